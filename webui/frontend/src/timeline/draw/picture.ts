/** The picture that one frame draws, and the edges of its canvas in CSS pixels. */

import type { Fleet } from "../format/fleet";
import type { Band } from "../layout/bands";
import type { Rectangle } from "../layout/rectangles";
import type { Scene } from "../layout/scene";
import type { TimelineState } from "../state";
import type { View } from "../view";

export const GUTTER = 150;
export const AXIS_HEIGHT = 24;

export interface Picture {
  fleet: Fleet;
  cells: number[][];
  scene: Scene;
  state: TimelineState;
  view: View;
  /** Of the canvas, CSS pixels. */
  height: number;
  scrollTop: number;
  hover: { band: Band; rectangle: Rectangle } | null;
  /** Names of each rank that the search found; null: nothing is searched. */
  found: Map<number, Set<number>> | null;
}
