/** The sampled quantities of the open ranks, asked from the report. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { getJson } from "@/api/client";
import type { SamplePage } from "@/api/models";
import type { Fleet } from "./format/fleet";
import { countersOf, type Counter } from "./layout/counters";

/** By rank; `report` is the report's address. Empty until they are here, and of a report without samples. */
export function useCounters(report: string, fleet: Fleet | undefined, open: readonly number[]): ReadonlyMap<number, Counter[]> {
  const wanted = open.map((rank) => `rank=${rank}`).join("&");
  const { data } = useQuery({
    queryKey: ["counters", report, wanted],
    queryFn: ({ signal }) => getJson<SamplePage>(`${report}/samples?${wanted}`, signal),
    enabled: fleet !== undefined && wanted !== "",
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
  return useMemo(() => {
    if (!data || !fleet) return new Map<number, Counter[]>();
    const { origin_ns: origin, ranks } = fleet.header;
    const shift = (rank: number) => ranks.shift_ns[ranks.rank.indexOf(rank)] ?? 0;
    return new Map(open.map((rank) => [rank, countersOf(data, rank, BigInt(origin), shift(rank))]));
  }, [data, fleet, open]);
}
