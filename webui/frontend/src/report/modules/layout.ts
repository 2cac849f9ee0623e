// Boxes of an icicle and lines of code, from the nodes of a tree of modules: a node before those inside it. Pure.
import type { ModuleNode } from "@/api/models";

export interface Box {
  /** The node's number in the list. */
  at: number;
  /** The number of the node around it, -1 for a root. */
  around: number;
  depth: number;
  /** Parts of the whole width, 0 to 1. */
  left: number;
  width: number;
}

const PARTS = ["forward", "backward", "recompute"] as const;
const HELD = ["parameter_bytes", "gradient_bytes", "optimizer_bytes", "saved_bytes"] as const;

/** Work of a node with all inside it, ns: of the device, or of operators on the host. */
export function workOf(node: ModuleNode, onDevice: boolean): number {
  return PARTS.reduce((sum, part) => sum + node[part][onDevice ? "device_ns" : "host_ns"], 0);
}

/** The number of the node around each, -1 for roots. */
export function findAround(nodes: readonly ModuleNode[]): number[] {
  const open: number[] = [];
  return nodes.map(({ depth }, at) => {
    open.length = Math.min(depth, open.length);
    const around = open.at(-1) ?? -1;
    open.push(at);
    return around;
  });
}

/** Bytes that each node holds with all inside it, as far as they are known; a module that is called from two places holds in both. */
export function holdings(nodes: readonly ModuleNode[]): number[] {
  const bytes = nodes.map((node) => HELD.reduce((sum, part) => sum + (node[part] ?? 0), 0));
  const around = findAround(nodes);
  for (let at = nodes.length - 1; at >= 0; at--) if (around[at]! >= 0) bytes[around[at]!]! += bytes[at]!;
  return bytes;
}

/** One box of each node that has an amount; `amounts` are with all inside, `whole` is the full width. */
export function placeBoxes(nodes: readonly ModuleNode[], amounts: readonly number[], whole: number): Box[] {
  const around = findAround(nodes);
  const used = new Map<number, number>(); // by node: where the next one inside begins
  const boxOf = new Map<number, Box>();
  const boxes: Box[] = [];
  nodes.forEach(({ depth }, at) => {
    const outer = boxOf.get(around[at]!);
    if (whole <= 0 || amounts[at]! <= 0 || (around[at]! >= 0 && !outer)) return;
    const begin = used.get(around[at]!) ?? outer?.left ?? 0;
    const end = outer ? outer.left + outer.width : 1;
    const width = Math.min(amounts[at]! / whole, end - begin);
    if (width <= 0) return;
    used.set(around[at]!, begin + width);
    const box = { at, around: around[at]!, depth, left: begin, width };
    boxOf.set(at, box);
    boxes.push(box);
  });
  return boxes;
}

/** A line of the job's code that calls modules. */
export interface Line {
  place: string;
  workNs: number;
  heldBytes: number;
  calls: number;
  modules: number[];
}

/** Lines with the most work first; a line inside itself counts once. */
export function listLines(nodes: readonly ModuleNode[], onDevice: boolean): Line[] {
  const around = findAround(nodes);
  const held = holdings(nodes);
  const lines = new Map<string, Line>();
  nodes.forEach((node, at) => {
    const place = placeOf(node);
    if (!place) return;
    const line = lines.get(place) ?? { place, workNs: 0, heldBytes: 0, calls: 0, modules: [] };
    lines.set(place, line);
    line.modules.push(at);
    line.calls += node.calls;
    for (let outer = around[at]!; outer >= 0; outer = around[outer]!) if (placeOf(nodes[outer]!) === place) return;
    line.workNs += workOf(node, onDevice);
    line.heldBytes += held[at]!;
  });
  return [...lines.values()].toSorted((one, other) => other.workNs - one.workNs);
}

/** `models/net.py:14`, "" where nobody knows. */
export function placeOf(node: ModuleNode): string {
  return node.call_line ? `${node.call_file}:${node.call_line}` : "";
}

/** A module's name without that of the module around it. */
export function shortName(nodes: readonly ModuleNode[], at: number, around: number): string {
  const outer = nodes[around]?.name;
  const name = nodes[at]!.name;
  return outer && name.startsWith(`${outer}.`) ? name.slice(outer.length + 1) : name;
}
