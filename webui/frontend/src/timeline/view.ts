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

export function isWithin(start: number, duration: number, at: number): boolean {
  return at >= start && at < start + duration;
}

/** The span moved, and shortened where it is longer, so that it lies within the whole. */
export function within(span: Span, whole: Span): Span {
  const length = Math.min(span.end - span.start, whole.end - whole.start);
  const start = clamp(span.start, whole.start, whole.end - length);
  return { start, end: start + length };
}

/** The view moved by a share of its width, as far as there is time. */
export function pan(view: Span, whole: Span, share: number): Span {
  const length = view.end - view.start;
  const start = clamp(view.start + share * length, whole.start, Math.max(whole.start, whole.end - length));
  return within({ start, end: start + length }, whole);
}

/** The view zoomed by a factor (below 1: closer) around a time, between 100 ns and the whole. */
export function zoom(view: Span, whole: Span, factor: number, center: number): Span {
  const length = view.end - view.start;
  const wanted = Math.max(LEAST_NS, length * factor);
  const start = center - ((center - view.start) / length) * wanted;
  return within({ start, end: start + wanted }, whole);
}

/** A view of a span with a tenth of it on either side, as far as there is time. */
export function around(span: Span, whole: Span): Span {
  const rest = Math.max(LEAST_NS, (span.end - span.start) / 10);
  return within({ start: span.start - rest, end: span.end + rest }, whole);
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
