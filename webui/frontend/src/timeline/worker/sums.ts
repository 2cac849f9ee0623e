/**
 * What a rank ran within a span, summed by track, class and name; events that reach beyond count with their part inside.
 *
 * Guarantees: what encloses other events of its thread counts for its name, and for track and class only the outermost does;
 * where the rank has a device, classes are those of its work.
 */

import { rowsWithin } from "./rows";
import type { Source } from "./source";

export interface Sum<Key> {
  key: Key;
  count: number;
  totalNs: number;
}

export interface RangeSums {
  tracks: Sum<number>[];
  classes: Sum<string>[];
  /** By the number of the name in the rank's dictionary. */
  names: Sum<number>[];
}

/** The sums, the longest first. Rejects with a sentence for people. */
export async function sumRange(source: Source, rank: number, start: number, end: number, signal?: AbortSignal): Promise<RangeSums> {
  const header = await source.header(rank);
  const [tracks, classes, names] = [new Map<number, Sum<number>>(), new Map<string, Sum<string>>(), new Map<number, Sum<number>>()];
  for await (const { tile, row } of rowsWithin(source, rank, start, end, signal)) {
    const lane = tile.lane[row]!;
    const name = tile.name[row]!;
    const track = header.lanes.track[lane]!;
    const ns = Math.min(end, tile.start[row]! + tile.duration[row]!) - Math.max(start, tile.start[row]!);
    const isStream = header.tracks.kind[track] === "stream";
    add(names, name, ns);
    if (!isStream && header.lanes.depth[lane] !== 0) continue;
    add(tracks, track, ns);
    if (isStream || header.kind === "cpu") add(classes, header.classes[header.names.cls[name]!]!, ns);
  }
  return { tracks: sorted(tracks), classes: sorted(classes), names: sorted(names) };
}

function add<Key>(sums: Map<Key, Sum<Key>>, key: Key, ns: number): void {
  const known = sums.get(key);
  if (known) {
    known.count += 1;
    known.totalNs += ns;
  } else sums.set(key, { key, count: 1, totalNs: ns });
}

function sorted<Key>(sums: Map<Key, Sum<Key>>): Sum<Key>[] {
  return [...sums.values()].toSorted((one, other) => other.totalNs - one.totalNs);
}
