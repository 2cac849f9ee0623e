// Made by webui/generate.py from IDLE_CAUSES of fleetprof_api: the class of time that draws each cause.

export const IDLE_CAUSES = {
  data_loading: "data_loading",
  synchronization: "host",
  launching: "host",
  host: "host",
  optimizer: "optimizer",
  waiting: "other",
  unknown: "other",
} as const;
