import { useInfiniteQuery, useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { ALONE } from "@/api/alone";
import type { ReportPage, WhatIfSlice } from "@/api/models";
import { sliceQuery, workloadQuery } from "@/api/queries";
import { readJob } from "../target";
import { type BatchLines, fitLines } from "./lines";

const MOST_CAPTURES = 8;

export interface JobLines {
  lines: BatchLines | null;
  /** uid@size of the captures that they rest on. */
  captures: readonly string[];
}

/** The lines through the latest captures of the same job with as many ranks, where they say their batch sizes. */
export function useLines({ namespace, uid, request }: ReportPage, slice: WhatIfSlice): JobLines {
  const job = readJob(request?.target ?? "");
  const asks = !ALONE && job !== undefined && slice.samples !== null;
  const others = useInfiniteQuery({ ...workloadQuery(namespace, job?.kind ?? "-", job?.name ?? "-"), enabled: asks });
  const uids = (others.data?.pages[0]?.items ?? []).filter((one) => one.figures && one.uid !== uid).slice(0, MOST_CAPTURES).map((one) => one.uid);
  const slices = useQueries({ queries: uids.map((one) => ({ ...sliceQuery(namespace, one, "whatif"), retry: false })) });
  const sized = [slice, ...slices.map(({ data }) => data)].flatMap((one, at) =>
    one && one.samples !== null && one.ranks === slice.ranks ? [{ uid: [uid, ...uids][at]!, size: one.samples, iterations: one.iteration_ns, memoryBytes: one.memory_bytes }] : [],
  );
  const key = sized.map((one) => `${one.uid}@${one.size}`).join(" ");
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- a capture never changes
  return useMemo(() => ({ lines: fitLines(sized), captures: key.split(" ") }), [key]);
}
