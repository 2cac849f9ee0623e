/** The timeline as the page mounts it. */

export { Timeline } from "./Timeline";
export { MOST_CHARACTERS, nameUnreadable, readState, WHOLE, writeState, type TimelineState } from "./state";
export { readGoal, stateOf, type Goal } from "./goal";
export type { SampledLine } from "./search";
