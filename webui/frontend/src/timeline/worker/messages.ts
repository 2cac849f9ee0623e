/** What page and worker say to each other. */

export type Question =
  | { ask: "base"; base: string }
  | { ask: "cancel"; id: number }
  | { ask: "fleet"; id: number }
  | { ask: "rank"; id: number; rank: number }
  | { ask: "nodes"; id: number; rank: number }
  | { ask: "tile"; id: number; rank: number; level: number; tile: number };

export type Answer = { id: number; value: unknown; problem?: undefined } | { id: number; problem: string };
