/** The timeline as the page mounts it. */

export { Timeline } from "./Timeline";
export { readState, WHOLE, type TimelineState } from "./state";
export type { SampledLine } from "./search";
