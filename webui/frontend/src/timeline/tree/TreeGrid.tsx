/** The same nodes as a real tree grid: for screen readers, for the keyboard, and for whoever reads numbers. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import { NODE, type NodeColumns, type RankHeader } from "../format/rank";
import { trackLabel } from "../layout/tracks";
import { findGaps, findThreads, inOrder, type Meanwhile } from "./gaps";
import { childrenOf, groupChildren, groupName, type TreeNode } from "./groups";
import { lineKey, readOpened, writeOpened } from "./opened";

interface Props {
  rank: number;
  header: RankHeader;
  nodes: NodeColumns;
  /** Below this share of their parent nodes are grouped. */
  share: number;
  /** Of threads that do not train: what the training threads may wait for. */
  collectives: readonly Meanwhile[];
  /** The lines that are open when the tree appears (opened.ts); undefined for the first iteration. */
  opened: string | undefined;
  /** Is told the lines that are open whenever the reader changes them. */
  onOpened: (lines: string) => void;
  /** Shows a span of the rank, ns from its origin. */
  onGo: (start: number, duration: number) => void;
  /** Shows an event and chooses it. */
  onChoose: (start: number, duration: number, name: number) => void;
}

interface Line {
  key: string;
  level: number;
  group: TreeNode;
  /** Of what it is a part, ns; 0 for none. */
  of: number;
  opens: boolean;
  place: number;
  /** The longest of those beside it, of which there are several. */
  longest: boolean;
  size: number;
}

const LINE_HEIGHT = 26;

export function TreeGrid({ rank, header, nodes, share, collectives, opened, onOpened, onGo, onChoose }: Props) {
  const children = useMemo(() => childrenOf(nodes), [nodes]);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => readOpened(opened ?? `${children.get(-1)?.[0] ?? 0}`));
  const [at, setAt] = useState(0);
  const scroll = useRef<HTMLDivElement>(null);
  const threads = useMemo(() => findThreads(header, nodes, children), [header, nodes, children]);
  const others = useMemo(() => inOrder([...collectives, ...threads]), [collectives, threads]);
  const lines = useMemo(() => listLines(header, nodes, children, share, open, others), [header, nodes, children, share, open, others]);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 6,
  });
  const nameOf = (node: number) => nodeName(header, nodes, node);

  const toggle = (line: Line, wanted: boolean) => {
    if (!line.opens || open.has(line.key) === wanted) return;
    const next = new Set(open);
    if (wanted) next.add(line.key);
    else next.delete(line.key);
    setOpen(next);
    onOpened(writeOpened(next));
  };
  const move = (to: number) => {
    const next = Math.min(Math.max(0, to), lines.length - 1);
    setAt(next);
    rows.scrollToIndex(next);
  };
  const show = ({ group }: Line) => {
    const isEvent = group.members.length === 1 && nodes.kind[group.node] === NODE.row;
    if (isEvent) onChoose(group.start, group.duration, nodes.item[group.node]!);
    else onGo(group.start, group.duration);
  };
  const press = (event: KeyboardEvent) => {
    const line = lines[at];
    if (!line) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(lines.length - 1),
      ArrowRight: () => (open.has(line.key) ? move(at + 1) : toggle(line, true)),
      ArrowLeft: () => (open.has(line.key) ? toggle(line, false) : move(lines.findLastIndex((one, n) => n < at && one.level < line.level))),
      Enter: () => show(line),
    };
    const act = steps[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  const left = header.nodes.left_out;
  return (
    <section className="timeline-tree" aria-label={`Iterations, stages and operators of rank ${rank}`}>
      <div
        ref={scroll}
        className="timeline-tree-scroll"
        role="treegrid"
        aria-label={`Rank ${rank}`}
        aria-rowcount={lines.length + 1}
        aria-activedescendant={lines[at] ? `timeline-node-${at}` : undefined}
        tabIndex={0}
        onKeyDown={press}
      >
        <div role="row" aria-rowindex={1} className="timeline-tree-row timeline-tree-head">
          {["Name", "Time", "Of parent", "Device time", "Events inside"].map((name) => (
            <span role="columnheader" key={name}>
              {name}
            </span>
          ))}
        </div>
        <div role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((item) => {
            const line = lines[item.index]!;
            const { of } = line;
            const isRow = nodes.kind[line.group.node] === NODE.row;
            return (
              // Keys are the grid's: it has the focus, and names the line that is current.
              // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
              <div
                key={line.key}
                id={`timeline-node-${item.index}`}
                role="row"
                aria-rowindex={item.index + 2}
                aria-level={line.level + 1}
                aria-posinset={line.place}
                aria-setsize={line.size}
                aria-expanded={line.opens ? open.has(line.key) : undefined}
                aria-selected={item.index === at}
                className="timeline-tree-row"
                style={{ position: "absolute", top: item.start, height: LINE_HEIGHT, insetInline: 0 }}
                onClick={() => {
                  setAt(item.index);
                  toggle(line, !open.has(line.key));
                  // What is shown here is fetched in its detail there: a group opens with what lies inside it.
                  show(line);
                }}
              >
                <span role="gridcell" style={{ paddingInlineStart: line.level * 14 }}>
                  <span aria-hidden="true">{line.opens ? (open.has(line.key) ? "▾ " : "▸ ") : "  "}</span>
                  <Name text={groupName(nodes, line.group, nameOf)} most={90} />
                </span>
                <span role="gridcell">
                  {line.longest && <b className="timeline-tree-longest">longest </b>}
                  {formatDuration(line.group.total)}
                </span>
                <span role="gridcell" className="timeline-tree-share">
                  {of ? <i style={{ width: `${Math.min(100, (line.group.total / of) * 100)}%` }} data-row={isRow} /> : null}
                  {of ? `${Math.round((line.group.total / of) * 100)} %` : ""}
                </span>
                <span role="gridcell">{formatDuration(sumOf(nodes.device_ns, line.group.members))}</span>
                <span role="gridcell">{sumOf(nodes.below, line.group.members).toLocaleString("en")}</span>
              </div>
            );
          })}
        </div>
      </div>
      {left > 0 && (
        <p className="quiet">{left.toLocaleString("en")} shorter operators are not in this list; the picture has them all.</p>
      )}
    </section>
  );
}

/** The lines that are shown: children of what is open, groups by themselves. */
function listLines(
  header: RankHeader,
  nodes: NodeColumns,
  children: Map<number, number[]>,
  share: number,
  open: ReadonlySet<string>,
  others: readonly Meanwhile[],
): Line[] {
  const lines: Line[] = [];
  const stageOf = (node: number) => header.stage_pieces.stage[nodes.item[node]!]!;
  const walk = (groups: TreeNode[], of: number, level: number, above: string, onOther: boolean) => {
    const longest = findLongest(nodes, groups);
    groups.forEach((group, index) => {
      const isGroup = group.members.length > 1;
      const key = group.gap ? `${above}/${group.gap}` : lineKey(group);
      const opens = !group.gap && ((isGroup && nodes.kind[group.node] !== NODE.stage) || group.members.some((node) => children.has(node)));
      lines.push({ key, level, group, of, opens, longest: longest.has(group), place: index + 1, size: groups.length });
      if (!open.has(key)) return;
      const isStage = nodes.kind[group.node] === NODE.stage;
      const isOther = onOther || nodes.kind[group.node] === NODE.thread;
      const inside = group.members.flatMap((node) => children.get(node) ?? []);
      const inner = isGroup && !isStage
        ? group.members.flatMap((node) => groupChildren(nodes, 0, [node], 0, stageOf))
        : [
            ...groupChildren(nodes, group.total, inside, share, stageOf),
            ...findGaps(nodes, group.members, children, isOther ? [] : others, nodes.kind[group.node] === NODE.row ? "self" : "nothing recorded"),
          ];
      walk(inner, isGroup && !isStage ? of : group.total, level + 1, key, isOther);
    });
  };
  walk(groupChildren(nodes, 0, children.get(-1) ?? [], 0, stageOf), 0, 0, "", false);
  return lines;
}

/** Of each kind the longest, where there are several: a mark of a whole iteration does not compete with its stages. */
function findLongest(nodes: NodeColumns, groups: TreeNode[]): Set<TreeNode> {
  const found = new Set<TreeNode>();
  for (const kind of Object.values(NODE)) {
    const like = groups.filter((group) => (group.gap ? NODE.row : nodes.kind[group.node]) === kind);
    if (like.length > 1) found.add(like.reduce((most, group) => (group.total > most.total ? group : most)));
  }
  return found;
}

export function nodeName(header: RankHeader, nodes: NodeColumns, node: number): string {
  const item = nodes.item[node]!;
  if (nodes.kind[node] === NODE.iteration) return `iteration ${header.iterations.index[item]}`;
  if (nodes.kind[node] === NODE.thread) return trackLabel(header, item);
  if (nodes.kind[node] === NODE.stage) return header.stages[header.stage_pieces.stage[item]!]!.replace("_", " ");
  return header.names.short[item] || header.names.text[item]!;
}

function sumOf(values: ArrayLike<number>, places: number[]): number {
  return places.reduce((sum, place) => sum + values[place]!, 0);
}
