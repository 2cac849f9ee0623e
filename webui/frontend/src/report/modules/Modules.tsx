// The modules of the model: where time goes beside where memory goes, linked to each other and to the lines of code.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { ModuleNode, ModuleTree } from "@/api/models";
import { sliceQuery } from "@/api/queries";
import { ShareBar } from "@/charts/ShareBar";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatBytes, formatCount, formatShare, plural } from "@/units/quantities";
import type { ReportView } from "../search";
import type { SectionProps } from "../sections";
import { Icicle } from "./Icicle";
import { type Line, findAround, holdings, listLines, placeBoxes, placeOf, workOf } from "./layout";

const SERIES = 8;

export function ModulesSection({ report, view }: SectionProps) {
  const query = useQuery(sliceQuery(view.namespace, view.uid, "modules"));
  const hasTimeline = report.has_timeline;
  return (
    <Section id="modules" title="Modules" note="of the model, in one iteration" lazyHeight={300}>
      <Loaded query={query} what="the modules" cut="module">
        {({ tree, remarks }) =>
          tree ? <Body tree={tree} remarks={remarks} view={view} hasTimeline={hasTimeline} /> : <Empty title="No modules in this report">Capture iterations with ModuleTree; the job needs the agent.</Empty>
        }
      </Loaded>
    </Section>
  );
}

function Body({ tree, remarks, view, hasTimeline }: { tree: ModuleTree; remarks: readonly string[]; view: ReportView; hasTimeline: boolean }) {
  const navigate = useNavigate();
  const { nodes } = tree;
  const onDevice = tree.whole.device_ns > 0;
  const whole = onDevice ? tree.whole.device_ns : tree.whole.host_ns;
  const drawn = useMemo(() => {
    const work = nodes.map((node) => workOf(node, onDevice));
    const held = holdings(nodes);
    const around = findAround(nodes);
    const heldByRoots = held.reduce((sum, bytes, at) => (around[at] === -1 ? sum + bytes : sum), 0);
    return { work, held, time: placeBoxes(nodes, work, whole), memory: placeBoxes(nodes, held, heldByRoots), lines: listLines(nodes, onDevice) };
  }, [nodes, onDevice, whole]);
  const [marked, setMarked] = useState<ReadonlySet<number>>(new Set());
  const mark = (at: number | undefined) => setMarked(new Set(at === undefined ? [] : [at]));
  const classes = useMemo(() => [...new Set(nodes.map((node) => node.class_name))], [nodes]);
  // The remarks say what the star means.
  const starOf = (node: ModuleNode) => (tree.measured_iterations > 0 && node.measured_iterations === 0 ? "*" : "");
  const describe = (at: number) => say(nodes[at]!, starOf(nodes[at]!), drawn.work[at]!, whole, drawn.held[at]!);
  const open = (at: number) => {
    const place = nodes[at]!.example;
    if (!place || !hasTimeline) return;
    void navigate({ to: "/reports/$namespace/$uid/timeline", params: { namespace: view.namespace, uid: view.uid }, search: { at: `${place.rank}:${place.start_ns}:${place.duration_ns}` } });
  };
  const paint = (at: number) => {
    const { roof_permille: roof, class_name: name } = nodes[at]!;
    return roof === null ? ([`--series-${1 + (classes.indexOf(name) % SERIES)}`, 0.4] as const) : (["--compute", Math.min(roof / 1000, 1)] as const);
  };
  const shared = { nodes, describe, paint, marked, onMark: mark, onOpen: open };
  const known = nodes.some((node) => node.roof_permille !== null);
  const first = [...marked][0];
  const lineColumns: Column<Line>[] = [
    { id: "place", header: "Line", width: "auto", cell: (line) => <Name text={line.place} most={60} code /> },
    { id: "work", header: "Time", width: "96px", numeric: true, cell: (line) => formatDuration(line.workNs) },
    { id: "share", header: "Share", width: "140px", cell: (line) => <ShareBar share={whole > 0 ? line.workNs / whole : null} color="--compute" /> },
    { id: "held", header: "Memory", width: "110px", numeric: true, cell: (line) => (line.heldBytes ? formatBytes(line.heldBytes) : "–") },
    { id: "calls", header: "Calls", width: "80px", numeric: true, cell: (line) => formatCount(line.calls) },
    { id: "modules", header: "Modules", width: "30%", cell: (line) => <Name text={nodes[line.modules[0]!]!.name + (line.modules.length > 1 ? ` and ${line.modules.length - 1} more` : "")} most={48} /> },
  ];
  return (
    <>
      <p className="quiet">
        {tree.measured_iterations > 0 ? `Medians of ${plural(tree.measured_iterations, "measured iteration")}.` : "Times are of the marked iteration alone, with the cost of its marks."}{" "}
        {known ? "The stronger the color, the nearer to what the device allows." : "One color for each class: how near the device's peak is not known."}
        {hasTimeline && " A click opens the timeline there."}
      </p>
      {remarks.length > 0 && (
        <ul className="quiet">
          {remarks.map((remark) => (
            <li key={remark}>
              <Name text={remark} most={600} />
            </li>
          ))}
        </ul>
      )}
      <div className="icicles">
        <div>
          <h3>Time</h3>
          <Icicle {...shared} label="Modules by time" boxes={drawn.time} />
        </div>
        <div>
          <h3>Memory</h3>
          {drawn.memory.length > 0 ? <Icicle {...shared} label="Modules by memory" boxes={drawn.memory} /> : <p className="quiet">Not known.</p>}
        </div>
      </div>
      <p className="module-told">{first === undefined ? <span className="quiet">Point at a module to see it in both pictures, and its line.</span> : <Name text={describe(first)} most={240} />}</p>
      <h3 id="code">Code</h3>
      {drawn.lines.length > 0 ? (
        <DataTable<Line>
          label="Lines of code that call modules"
          columns={lineColumns}
          rows={drawn.lines}
          rowKey={(line) => line.place}
          isSelected={(line) => line.modules.some((at) => marked.has(at))}
          onSelect={(line) => setMarked(new Set(line.modules))}
          mostHeight={320}
          minWidth={640}
        />
      ) : (
        <p className="quiet">No line is known that calls a module.</p>
      )}
    </>
  );
}

function say(node: ModuleNode, star: string, work: number, whole: number, held: number): string {
  const name = node.name + star;
  const facts = [node.class_name && node.class_name !== node.name ? `${name} (${node.class_name})` : name];
  facts.push(`${formatDuration(work)}${whole > 0 ? `, ${formatShare(work / whole)} of the iteration's work` : ""}`);
  if (held > 0) facts.push(`holds ${formatBytes(held)}`);
  if (node.roof_permille !== null) facts.push(`${formatShare(node.roof_permille / 1000)} of what ${node.roof === "compute" ? "the peak" : "memory"} allows`);
  if (placeOf(node)) facts.push(`called at ${placeOf(node)}`);
  return facts.join(" · ");
}
