/** What launched what: found from the rows of a view, of which each kernel says when and on which track it was launched. Pure. */

import type { Rectangle } from "./rectangles";
import type { RankScene } from "./scene";

export interface Launched {
  lane: number;
  rectangle: Rectangle;
  /** When it was launched, ns from the rank's origin. */
  at: number;
}

/** When and on which lane's track a row was launched; undefined where that is not known. */
export function launchOf(one: Rectangle): { at: number; lane: number } | undefined {
  const at = one.tile.launch?.[one.row] ?? Number.NaN;
  return Number.isNaN(at) ? undefined : { at, lane: one.tile.launchLane![one.row]! };
}

/** The device's work in view that was launched inside an event of a lane, by lane and start. */
export function launchedBy({ header, lanes }: RankScene, lane: number, event: Rectangle): Launched[] {
  const track = header.lanes.track[lane];
  const found: Launched[] = [];
  lanes.forEach((list, other) => {
    for (const rectangle of list) {
      const launch = launchOf(rectangle);
      if (!launch || header.lanes.track[launch.lane] !== track) continue;
      if (launch.at >= event.start && launch.at < event.start + event.duration)
        found.push({ lane: other, rectangle, at: launch.at });
    }
  });
  return found;
}

/** Their names, the one with the longest total first, each with how many rows and how long. */
export function sumLaunched(launched: Launched[]): { name: number; count: number; totalNs: number }[] {
  const sums = new Map<number, { name: number; count: number; totalNs: number }>();
  for (const { rectangle: one } of launched) {
    const sum = sums.get(one.name) ?? { name: one.name, count: 0, totalNs: 0 };
    sums.set(one.name, { name: one.name, count: sum.count + one.count, totalNs: sum.totalNs + one.duration });
  }
  return [...sums.values()].toSorted((one, other) => other.totalNs - one.totalNs);
}
