/**
 * What nothing under a node accounts for: waits for collectives of other threads, and time of which nothing is recorded. Pure.
 *
 * Guarantees: children of one thread, its waits and the rest add up to their parent.
 */

import type { NodeColumns, RankHeader, Tile } from "../format/rank";
import type { TreeNode } from "./groups";

/** A collective on a thread that does not train. */
export interface Collective {
  name: string;
  start: number;
  end: number;
  /** The latest end of this one and of all that start before it. */
  reach: number;
}

const LEAST_SHARE = 0.005;

/** The collectives of a rank without a device, by start, as far as these tiles have them, of whatever levels. */
export function findCollectives(header: RankHeader, tiles: readonly Tile[]): Collective[] {
  if (header.kind !== "cpu") return [];
  const isCollective = header.names.cls.map((cls) => header.classes[cls]!.startsWith("communication"));
  const found = new Map<string, Collective>();
  for (const { rows, lane, name, start, duration } of tiles)
    for (let row = 0; row < rows; row++) {
      const track = header.lanes.track[lane[row]!]!;
      if (track === header.tracks.main || !isCollective[name[row]!]) continue;
      const text = header.names.short[name[row]!] || header.names.text[name[row]!]!;
      const end = start[row]! + duration[row]!;
      found.set(`${lane[row]} ${start[row]}`, { name: text, start: start[row]!, end, reach: end });
    }
  const list = [...found.values()].toSorted((one, other) => one.start - other.start);
  list.forEach((one, at) => (one.reach = Math.max(one.end, list[at - 1]?.reach ?? one.end)));
  return list;
}

/** The lines beside the children of these nodes, without those of less than half a hundredth; `self` names the rest. */
export function findGaps(
  nodes: NodeColumns,
  members: readonly number[],
  children: ReadonlyMap<number, number[]>,
  collectives: readonly Collective[],
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
    for (let next = firstBehind(collectives, start); next < collectives.length; next++) {
      const one = collectives[next]!;
      if (one.start >= end) break;
      if (one.end <= at) continue;
      add(self, at, Math.max(at, one.start));
      at = Math.max(at, one.start);
      add(`wait for ${one.name}`, at, Math.min(end, one.end));
      at = Math.min(end, one.end);
    }
    add(self, at, end);
  };
  for (const node of members) {
    const end = nodes.start_ns[node]! + nodes.duration_ns[node]!;
    whole += nodes.duration_ns[node]!;
    let at = nodes.start_ns[node]!;
    for (const child of (children.get(node) ?? []).toSorted((one, other) => nodes.start_ns[one]! - nodes.start_ns[other]!)) {
      split(at, Math.min(end, nodes.start_ns[child]!));
      at = Math.max(at, nodes.start_ns[child]! + nodes.duration_ns[child]!);
    }
    split(at, end);
  }
  return [...found.values()].filter(({ total }) => total >= LEAST_SHARE * whole);
}

/** The first of these, by start, that may end behind a time. */
function firstBehind(collectives: readonly Collective[], time: number): number {
  let [low, high] = [0, collectives.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (collectives[middle]!.reach <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
