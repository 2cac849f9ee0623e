// Modules as boxes below those that call them. Arrow keys go along the tree; Enter and a click open what the caller says.
import { type CSSProperties, useId, useState } from "react";
import type { ModuleNode } from "@/api/models";
import type { Box } from "./layout";
import { shortName } from "./layout";
import "./modules.css";

interface Props {
  label: string;
  nodes: readonly ModuleNode[];
  boxes: readonly Box[];
  describe: (at: number) => string;
  /** Paint of a box: a custom property of the palette, and its strength, 0 to 1. */
  paint: (at: number) => readonly [color: string, strength: number];
  marked: ReadonlySet<number>;
  onMark: (at: number | undefined) => void;
  onOpen: (at: number) => void;
}

const ROW = 24;
const MOST_DEPTH = 12;
const NARROWEST = 0.001;

export function Icicle({ label, nodes, boxes, describe, paint, marked, onMark, onOpen }: Props) {
  const id = useId();
  const shown = boxes.filter(({ depth, width }) => depth < MOST_DEPTH && width >= NARROWEST);
  const [focus, setFocus] = useState<number>();
  const current = shown.find(({ at }) => at === focus) ?? shown[0];
  const rows = 1 + Math.max(0, ...shown.map(({ depth }) => depth));
  const go = (box: Box | undefined) => {
    if (!box) return;
    setFocus(box.at);
    onMark(box.at);
    document.getElementById(`${id}-${box.at}`)?.focus();
  };
  const turn = (key: string, box: Box): Box | undefined => {
    const beside = shown.filter(({ around }) => around === box.around);
    const place = beside.indexOf(box);
    if (key === "ArrowLeft") return beside[place - 1];
    if (key === "ArrowRight") return beside[place + 1];
    if (key === "ArrowUp") return shown.find(({ at }) => at === box.around);
    if (key === "ArrowDown") return shown.find(({ around }) => around === box.at);
    return key === "Home" ? shown[0] : undefined;
  };
  return (
    <div className="icicle" role="tree" tabIndex={-1} aria-label={label} style={{ height: rows * ROW }} onMouseLeave={() => onMark(undefined)}>
      {shown.map((box) => {
        const [color, strength] = paint(box.at);
        const style = {
          left: `${100 * box.left}%`, width: `${100 * box.width}%`, top: box.depth * ROW, height: ROW - 1,
          "--paint": `var(${color})`, "--strength": `${Math.round(6 + 40 * strength)}%`,
        } as CSSProperties;
        return (
          <div
            key={box.at}
            id={`${id}-${box.at}`}
            role="treeitem"
            aria-level={box.depth + 1}
            aria-selected={marked.has(box.at)}
            aria-label={describe(box.at)}
            title={describe(box.at)}
            tabIndex={box === current ? 0 : -1}
            className={marked.has(box.at) ? "box marked" : "box"}
            style={style}
            onMouseEnter={() => onMark(box.at)}
            onFocus={() => onMark(box.at)}
            onClick={() => { setFocus(box.at); onOpen(box.at); }}
            onKeyDown={(event) => {
              if (event.key === "Enter") return onOpen(box.at);
              const next = turn(event.key, box);
              if (next) event.preventDefault();
              go(next);
            }}
          >
            {box.width > 0.03 && <bdi>{shortName(nodes, box.at, box.around)}</bdi>}
          </div>
        );
      })}
    </div>
  );
}
