/** What page and worker say to each other. */

import type { CutPart } from "./cut";

export type Question =
  | { ask: "base"; base: string }
  | { ask: "cancel"; id: number }
  | { ask: "fleet"; id: number }
  | { ask: "rank"; id: number; rank: number }
  | { ask: "nodes"; id: number; rank: number }
  | { ask: "tile"; id: number; rank: number; level: number; tile: number }
  | { ask: "cut"; id: number; parts: CutPart[] }
  | { ask: "arguments"; id: number; rank: number; words: string }
  | { ask: "find"; id: number; rank: number; names: number[]; from: number; forward: boolean }
  | { ask: "sums"; id: number; rank: number; start: number; end: number }
  | { ask: "collective"; id: number; rank: number; ranks: readonly number[]; name: number; start: number }
  | { ask: "underWay"; id: number; rank: number; lane: number; at: number }
  | { ask: "launched"; id: number; rank: number; lane: number; start: number; end: number }
  | { ask: "event"; id: number; rank: number; name: string; start: number };

export type Answer = { id: number; value: unknown; problem?: undefined } | { id: number; problem: string };
