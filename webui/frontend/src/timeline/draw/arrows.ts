/** Arrows between what launched and what was launched: of the event that is looked at, in both directions. */

import { LANE_HEIGHT, type Band } from "../layout/bands";
import { launchedBy, launchOf } from "../layout/launches";
import type { Rectangle } from "../layout/rectangles";
import { toPixel } from "../view";
import type { Colors } from "./fills";
import { GUTTER, type Picture } from "./picture";

const MOST = 60;

export interface Arrow {
  from: { x: number; y: number };
  to: { x: number; y: number };
}

/** The arrows of the chosen event, in pixels of the layout. */
export function findArrows({ state, scene, view, fleet }: Picture): Arrow[] {
  const { chosen } = state;
  const opened = chosen ? scene.ranks.get(chosen.rank) : undefined;
  const one = chosen ? opened?.lanes[chosen.lane]?.find((rectangle) => rectangle.start === chosen.start) : undefined;
  if (!chosen || !opened || !one) return [];
  const row = fleet.header.ranks.rank.indexOf(chosen.rank);
  const bands = scene.layout.bands.filter((band): band is Band & { kind: "lane" } => band.kind === "lane" && band.row === row);
  const { header, offset } = opened;
  const bandOf = (lane: number) => bands.find((band) => band.lane === lane);
  const x = (ns: number) => GUTTER + toPixel(view, ns + offset);
  const middle = (band: Band) => band.y + LANE_HEIGHT / 2;
  // The lane of a launch is its track's outermost: the deepest one that is shown is nearest to the call.
  const deepest = (lane: number) =>
    bands.findLast((band) => header.lanes.track[band.lane] === header.lanes.track[lane]) ?? bandOf(lane);
  const arrowOf = (kernel: Rectangle, lane: number, from?: Band): Arrow[] => {
    const launch = launchOf(kernel);
    const band = bandOf(lane);
    const origin = launch && (from ?? deepest(launch.lane));
    if (!band || !launch || !origin) return [];
    return [{ from: { x: x(launch.at), y: middle(origin) }, to: { x: x(kernel.start), y: middle(band) } }];
  };
  if (launchOf(one)) return arrowOf(one, chosen.lane);
  return launchedBy(opened, chosen.lane, one)
    .flatMap(({ lane, rectangle }) => arrowOf(rectangle, lane, bandOf(chosen.lane)))
    .slice(0, MOST);
}

/** Draws them. */
export function paintArrows(context: CanvasRenderingContext2D, picture: Picture, colors: Colors): void {
  context.strokeStyle = context.fillStyle = colors.link;
  for (const { from, to } of findArrows(picture)) {
    const left = Math.max(from.x, GUTTER);
    context.beginPath();
    context.moveTo(left, from.y);
    context.bezierCurveTo(left + 20, from.y, to.x - 20, to.y, to.x, to.y);
    context.stroke();
    context.beginPath();
    context.arc(left, from.y, 2.5, 0, 7);
    context.moveTo(to.x, to.y);
    context.lineTo(to.x - 6, to.y - 3.5);
    context.lineTo(to.x - 6, to.y + 3.5);
    context.fill();
  }
}
