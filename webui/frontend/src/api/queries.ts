// Everything that pages read, by address. A report never changes once it is there; lists and requests do.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ALONE, type Beside, readInside } from "./alone";
import { address, getJson, path, type Params } from "./client";
import type * as models from "./models";
import type { components } from "./schema";

type Schemas = components["schemas"];

const LIVE_MS = 10_000;

export const whoamiQuery = queryOptions({
  queryKey: ["whoami"],
  queryFn: ({ signal }) => getJson<models.Whoami>("/whoami", signal),
  staleTime: Number.POSITIVE_INFINITY,
});

function pages<Page extends { next: string | null }>(route: string, params: Params, refetchInterval: number | false) {
  return infiniteQueryOptions({
    queryKey: [route, params],
    queryFn: ({ signal, pageParam }) => getJson<Page>(address(route, { ...params, after: pageParam }), signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval,
    placeholderData: (before) => before,
  });
}

export const fleetQuery = (params: Params) => pages<models.FleetPage>("/fleet", params, 3 * LIVE_MS);
export const requestsQuery = (params: Params) => pages<models.RequestPage>("/requests", params, LIVE_MS);

export const openedQuery = queryOptions({
  queryKey: ["opened"],
  queryFn: ({ signal }) => getJson<models.OpenedPage>("/opened", signal),
  refetchInterval: ({ state }) => (state.data?.finished ? false : 300),
});

export const workloadQuery = (namespace: string, kind: string, name: string) =>
  pages<models.WorkloadPage>(path("fleet", namespace, kind || "-", name), {}, 3 * LIVE_MS);

export const dayQuery = (namespace: string, kind: string, name: string) =>
  queryOptions({
    queryKey: ["telemetry", namespace, kind, name],
    queryFn: ({ signal }) => getJson<models.TelemetryDay>(path("telemetry", namespace, kind || "-", name), signal),
    refetchInterval: 6 * LIVE_MS,
  });

export const jobsQuery = queryOptions({
  queryKey: ["telemetry"],
  queryFn: ({ signal }) => getJson<models.JobPage>("/telemetry", signal),
  refetchInterval: 6 * LIVE_MS,
});

export const lossesQuery = queryOptions({
  queryKey: ["losses"],
  queryFn: ({ signal }) => getJson<models.LossPage>("/losses", signal),
  refetchInterval: 6 * LIVE_MS,
});

export const policiesQuery = queryOptions({
  queryKey: ["policies"],
  queryFn: ({ signal }) => getJson<models.PolicyPage>("/policies", signal),
  refetchInterval: LIVE_MS,
});

export const policyQuery = (namespace: string, name: string) =>
  queryOptions({
    queryKey: ["policies", namespace, name],
    queryFn: ({ signal }) => getJson<models.PolicyDetail>(path("policies", namespace, name), signal),
    refetchInterval: LIVE_MS,
  });

export const requestQuery = (namespace: string, uid: string) =>
  queryOptions({
    queryKey: ["request", namespace, uid],
    queryFn: ({ signal }) => getJson<models.RequestDetail>(path("requests", namespace, uid), signal),
  });

export const stacksQuery = (namespace: string, uid: string) =>
  queryOptions({
    queryKey: ["request", namespace, uid, "stacks"],
    queryFn: ({ signal }) => getJson<models.StacksPage>(path("requests", namespace, uid, "stacks"), signal),
    staleTime: 60_000,
  });

const readSlice = <Name extends keyof models.Slices>(namespace: string, uid: string, name: Name, signal?: AbortSignal) =>
  ALONE ? readInside<models.Slices[Name]>(name) : getJson<models.Slices[Name]>(path("reports", namespace, uid, "slices", name), signal);

/** One slice of a report. */
export const sliceQuery = <Name extends keyof models.Slices>(namespace: string, uid: string, name: Name) =>
  queryOptions({
    queryKey: ["report", namespace, uid, name],
    queryFn: ({ signal }) => readSlice(namespace, uid, name, signal),
    staleTime: 60_000,
  });

const NO_FILES: Schemas["ReportFiles"] = { namespace: "", uid: "", files: [], has_timeline: false, has_tables: false };

export const besideQuery = queryOptions({ queryKey: ["beside"], queryFn: () => readInside<Beside>("beside") });

export const reportQuery = (namespace: string, uid: string) =>
  queryOptions({
    queryKey: ["report", namespace, uid],
    queryFn: async ({ signal }): Promise<models.ReportPage> => {
      const files = ALONE ? NO_FILES : getJson<Schemas["ReportFiles"]>(path("reports", namespace, uid), signal);
      const [there, overview] = await Promise.all([files, readSlice(namespace, uid, "overview", signal)]);
      return { ...overview, ...there };
    },
    staleTime: 60_000,
  });

export const diffQuery = (base: string, changed: string, order: "given" | "time") =>
  queryOptions({
    queryKey: ["diff", base, changed, order],
    queryFn: ({ signal }) => getJson<models.Diff>(address("/diff", { base, new: changed, order }), signal),
    staleTime: 60_000,
  });
