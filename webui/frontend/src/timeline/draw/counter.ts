/** Draws a quantity over time: an area under its values, its highest value, and stripes where the device slowed itself. */

import { formatMeasure } from "@/units/quantities";
import type { Band } from "../layout/bands";
import type { Counter } from "../layout/counters";
import { upperBound } from "../layout/levels";
import { toPixel } from "../view";
import type { Colors } from "./fills";
import { GUTTER, type Picture } from "./picture";

const STRIPE = 3;

export function paintCounter(
  context: CanvasRenderingContext2D,
  { view }: Picture,
  counter: Counter | undefined,
  band: Pick<Band, "y" | "height">,
  colors: Colors,
): void {
  if (!counter) return;
  const { at, values, most, throttled } = counter;
  const bottom = band.y + band.height - 2;
  const room = band.height - 5;
  const x = (time: number) => GUTTER + toPixel(view, time);
  const first = Math.max(0, upperBound(at, view.start) - 1);
  const last = Math.min(at.length, upperBound(at, view.end) + 1);
  const color = colors.fill("compute").solid;
  const end = (place: number) => (place + 1 < at.length ? x(at[place + 1]!) : x(at[place]!) + 2);
  // Of samples in one pixel the highest is drawn: a short peak must not vanish.
  let pixel = Number.NEGATIVE_INFINITY;
  let highest = 0;
  for (let place = first; place < last; place++) {
    const value = values[place];
    if (value == null) continue;
    const left = x(at[place]!);
    highest = Math.floor(left) === pixel ? Math.max(highest, value) : value;
    pixel = Math.floor(left);
    const height = most > 0 ? (highest / most) * room : 0;
    const width = Math.max(1, end(place) - left);
    context.fillStyle = color;
    context.globalAlpha = 0.25;
    context.fillRect(left, bottom - height, width, height);
    context.globalAlpha = 1;
    context.fillRect(left, bottom - height - 0.5, width, 1);
  }
  context.fillStyle = colors.fill("communication_exposed").solid;
  for (const one of throttled)
    for (let place = 0; place < one.at.length; place++) {
      const share = one.values[place] ?? 0;
      const left = x(one.at[place]!);
      const right = place + 1 < one.at.length ? x(one.at[place + 1]!) : left + 2;
      if (share > 0) context.fillRect(left, band.y, Math.max(1, right - left), STRIPE);
    }
  const text = formatMeasure(most, counter.unit);
  context.fillStyle = colors.background;
  context.fillRect(GUTTER + 2, band.y + 1, context.measureText(text).width + 6, 13);
  context.fillStyle = colors.quiet;
  context.fillText(text, GUTTER + 5, band.y + 8);
}
