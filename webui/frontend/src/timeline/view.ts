/** The time axis: which ns are at which pixel, and how pan and zoom move them. Pure. */

export interface View {
  start: number;
  end: number;
  width: number;
}

export interface Span {
  start: number;
  end: number;
}

const LEAST_NS = 100;

export function nsPerPixel(view: View): number {
  return (view.end - view.start) / Math.max(1, view.width);
}

export function toPixel(view: View, ns: number): number {
  return (ns - view.start) / nsPerPixel(view);
}

export function toNs(view: View, pixel: number): number {
  return view.start + pixel * nsPerPixel(view);
}

/** The view moved by a share of its width, no further than half of it beyond the whole. */
export function pan(view: Span, whole: Span, share: number): Span {
  const length = view.end - view.start;
  const start = clamp(view.start + share * length, whole.start - length / 2, whole.end - length / 2);
  return { start, end: start + length };
}

/** The view zoomed by a factor (below 1: closer) around a time, between 100 ns and a tenth more than the whole. */
export function zoom(view: Span, whole: Span, factor: number, center: number): Span {
  const length = view.end - view.start;
  const wanted = clamp(length * factor, LEAST_NS, (whole.end - whole.start) * 1.1);
  const share = (center - view.start) / length;
  const start = center - share * wanted;
  return { start, end: start + wanted };
}

/** A view of a span with a tenth of it on either side. */
export function around(span: Span): Span {
  const rest = Math.max(LEAST_NS, (span.end - span.start) / 10);
  return { start: span.start - rest, end: span.end + rest };
}

/** Round times for the axis, at least 90 px apart. */
export function ticks(view: View): number[] {
  const least = nsPerPixel(view) * 90;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least) ?? 10 * power;
  const found: number[] = [];
  for (let at = Math.ceil(view.start / step) * step; at <= view.end && found.length < 200; at += step) found.push(at);
  return found;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
