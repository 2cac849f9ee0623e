/**
 * What nothing under a node accounts for: waits for collectives of other threads, time while another thread worked, and time
 * of which nothing is recorded. Pure.
 *
 * Guarantees: children of one thread, what other threads did meanwhile and the rest add up to their parent.
 */

import { NODE, type NodeColumns, type RankHeader, type Tile } from "../format/rank";
import { trackLabel } from "../layout/tracks";
import type { TreeNode } from "./groups";

/** Work of another thread, which the thread that is looked at may wait for. */
export interface Meanwhile {
  /** The line that time beside it gets. */
  words: string;
  start: number;
  end: number;
  /** The latest end of this one and of all that start before it. */
  reach: number;
}

const LEAST_SHARE = 0.005;

/** The collectives of a rank without a device, by start, as far as these tiles have them, of whatever levels. */
export function findCollectives(header: RankHeader, tiles: readonly Tile[]): Meanwhile[] {
  if (header.kind !== "cpu") return [];
  const isCollective = header.names.cls.map((cls) => header.classes[cls]!.startsWith("communication"));
  const found = new Map<string, Meanwhile>();
  for (const { rows, lane, name, start, duration } of tiles)
    for (let row = 0; row < rows; row++) {
      const track = header.lanes.track[lane[row]!]!;
      if (track === header.tracks.main || !isCollective[name[row]!]) continue;
      const text = header.names.short[name[row]!] || header.names.text[name[row]!]!;
      const end = start[row]! + duration[row]!;
      found.set(`${lane[row]} ${start[row]}`, { words: `wait for ${text}`, start: start[row]!, end, reach: end });
    }
  return inOrder([...found.values()]);
}

/** The events of threads that stand beside the first one in the tree, by start. */
export function findThreads(header: RankHeader, nodes: NodeColumns, children: ReadonlyMap<number, number[]>): Meanwhile[] {
  const found: Meanwhile[] = [];
  nodes.kind.forEach((kind, thread) => {
    if (kind !== NODE.thread) return;
    const words = `while ${trackLabel(header, nodes.item[thread]!)} worked`;
    for (const node of children.get(thread) ?? []) {
      const [start, end] = [nodes.start_ns[node]!, nodes.start_ns[node]! + nodes.duration_ns[node]!];
      found.push({ words, start, end, reach: end });
    }
  });
  return inOrder(found);
}

/** By start, each with the latest end up to it. */
export function inOrder(found: readonly Meanwhile[]): Meanwhile[] {
  let reach = -Infinity;
  return found
    .toSorted((one, other) => one.start - other.start)
    .map((one) => ({ ...one, reach: (reach = Math.max(reach, one.end)) }));
}

/** The lines beside the children of these nodes, without those of less than half a hundredth; `self` names the rest. */
export function findGaps(
  nodes: NodeColumns,
  members: readonly number[],
  children: ReadonlyMap<number, number[]>,
  others: readonly Meanwhile[],
  self: string,
): TreeNode[] {
  const found = new Map<string, TreeNode>();
  let whole = 0;
  const add = (gap: string, start: number, end: number) => {
    if (end <= start) return;
    const known = found.get(gap) ?? { node: members[0]!, members: [], gap, start, duration: 0, total: 0 };
    known.total += end - start;
    if (end - start > known.duration) Object.assign(known, { start, duration: end - start });
    found.set(gap, known);
  };
  const split = (start: number, end: number) => {
    let at = start;
    for (let next = firstBehind(others, start); next < others.length; next++) {
      const one = others[next]!;
      if (one.start >= end) break;
      if (one.end <= at) continue;
      add(self, at, Math.max(at, one.start));
      at = Math.max(at, one.start);
      add(one.words, at, Math.min(end, one.end));
      at = Math.min(end, one.end);
    }
    add(self, at, end);
  };
  for (const node of members) {
    const end = nodes.start_ns[node]! + nodes.duration_ns[node]!;
    whole += nodes.duration_ns[node]!;
    let at = nodes.start_ns[node]!;
    const own = (children.get(node) ?? []).filter((child) => nodes.kind[child] !== NODE.thread);
    for (const child of own.toSorted((one, other) => nodes.start_ns[one]! - nodes.start_ns[other]!)) {
      split(at, Math.min(end, nodes.start_ns[child]!));
      at = Math.max(at, nodes.start_ns[child]! + nodes.duration_ns[child]!);
    }
    split(at, end);
  }
  return [...found.values()].filter(({ total }) => total >= LEAST_SHARE * whole);
}

/** The first of these, by start, that may end behind a time. */
function firstBehind(others: readonly Meanwhile[], time: number): number {
  let [low, high] = [0, others.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (others[middle]!.reach <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
