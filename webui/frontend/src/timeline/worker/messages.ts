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
  | { ask: "find"; id: number; rank: number; names: number[]; from: number; forward: boolean };

export type Answer = { id: number; value: unknown; problem?: undefined } | { id: number; problem: string };
