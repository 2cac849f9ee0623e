// Which measure the heat map opens on: what the verdict is about, else how much a rank computes.

const FIRST_CHOICES = ["compute", "busy", "span", "iteration"];
/** What shows a cause of the verdict best, of the measures that the traces have. */
const OF_CAUSES: Record<string, readonly string[]> = {
  data_loading: ["stage_data_loading", "idle_data_loading"],
  host: ["stage_host", "idle_host"],
  garbage_collection: ["stage_host", "idle_host"],
  cpu_contention: ["stage_host", "idle_host"],
};

/** The measures to open with, the best first. */
export const firstMeasures = (cause: string | undefined) => [...(OF_CAUSES[cause ?? ""] ?? []), ...FIRST_CHOICES];
