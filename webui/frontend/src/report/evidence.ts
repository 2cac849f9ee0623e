// Where on the page the measure that a finding rests on is shown.

const SECTIONS: readonly (readonly [prefix: RegExp, id: string, name: string])[] = [
  [/straggler|lateness|slow_link/, "stragglers", "stragglers"],
  [/kernel|device_work/, "kernels", "kernels"],
  [/^communication|collective/, "communication", "communication"],
  [/launch|queue|graph/, "launches", "launches"],
  [/stage/, "stages", "stages"],
  [/capture_cost/, "cost", "capture cost"],
  [/heterogeneity/, "spread", "spread over ranks"],
  [/series|power|energy/, "samples", "samples"],
  [/iteration/, "iterations", "iterations"],
  [/problem|ledger|truncated|recorded/, "recorded", "what was recorded"],
];

/** The section that shows `measure`, a field of the report such as `idle_ns.data_loading`. */
export function evidenceOf(measure: string): { id: string; name: string } {
  const found = SECTIONS.find(([pattern]) => pattern.test(measure));
  return found ? { id: found[1], name: found[2] } : { id: "ranks", name: "time by rank" };
}
