/** The sampled quantities of the open ranks, asked from the report. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { getJson } from "@/api/client";
import type { SampleSlice } from "@/api/models";
import type { Fleet } from "./format/fleet";
import { countersOf, type Counter } from "./layout/counters";

/** By rank; `report` is the report's address. Empty until they are here, and of a report without samples. */
export function useCounters(report: string, fleet: Fleet | undefined, open: readonly number[]): ReadonlyMap<number, Counter[]> {
  const { data } = useQuery({
    queryKey: ["counters", report],
    queryFn: ({ signal }) => getJson<SampleSlice>(`${report}/slices/samples`, signal),
    enabled: fleet !== undefined && open.length > 0,
    staleTime: Infinity,
  });
  return useMemo(() => {
    if (!data || !fleet) return new Map<number, Counter[]>();
    const { origin_ns: origin, ranks } = fleet.header;
    const shift = (rank: number) => ranks.shift_ns[ranks.rank.indexOf(rank)] ?? 0;
    return new Map(open.map((rank) => [rank, countersOf(data, rank, BigInt(origin), shift(rank))]));
  }, [data, fleet, open]);
}
