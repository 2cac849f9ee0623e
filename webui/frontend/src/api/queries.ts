// Everything that pages read, by address. A report never changes once it is there; lists and requests do.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { address, getJson, path, type Params } from "./client";
import type * as models from "./models";

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

function reportPart<Part>(namespace: string, uid: string, part: string, params: Params = {}) {
  const route = path("reports", namespace, uid, ...(part ? part.split("/") : []));
  return queryOptions({
    queryKey: ["report", namespace, uid, part, params],
    queryFn: ({ signal }) => getJson<Part>(address(route, params), signal),
    staleTime: 60_000,
  });
}

export const reportQuery = (namespace: string, uid: string) => reportPart<models.ReportPage>(namespace, uid, "");
export const ranksQuery = (namespace: string, uid: string) => reportPart<models.RankColumns>(namespace, uid, "ranks");
export const boxesQuery = (namespace: string, uid: string) => reportPart<models.BoxPage>(namespace, uid, "boxes");
export const stragglersQuery = (namespace: string, uid: string) =>
  reportPart<models.StragglerPage>(namespace, uid, "stragglers");
export const iterationsQuery = (namespace: string, uid: string, measure?: string) =>
  reportPart<models.IterationPage>(namespace, uid, "iterations", { measure });
export const communicationQuery = (namespace: string, uid: string) =>
  reportPart<models.CommunicationPage>(namespace, uid, "communication");
export const launchesQuery = (namespace: string, uid: string) =>
  reportPart<models.LaunchPage>(namespace, uid, "launches");
export const samplesQuery = (namespace: string, uid: string, rank: number | undefined) =>
  reportPart<models.SamplePage>(namespace, uid, "samples", { rank });
export const kernelsQuery = (namespace: string, uid: string, params: Params) =>
  pages<models.KernelPage>(path("reports", namespace, uid, "kernels"), params, false);

export const kernelSpreadQuery = (namespace: string, uid: string, name: string, work_class: string) =>
  reportPart<models.KernelSpread>(namespace, uid, "kernels/spread", { name, work_class });

export const diffQuery = (base: string, changed: string, order: "given" | "time") =>
  queryOptions({
    queryKey: ["diff", base, changed, order],
    queryFn: ({ signal }) => getJson<models.Diff>(address("/diff", { base, new: changed, order }), signal),
    staleTime: 60_000,
  });
