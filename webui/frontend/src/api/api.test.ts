import { describe, expect, test } from "vitest";
import { readFleetSearch } from "@/fleet/search";
import { readReportSearch } from "@/report/search";
import { readRequestsSearch } from "@/requests/search";
import { address, path } from "./client";
import { withLines } from "./ledger";
import type { LedgerColumns } from "./models";
import { signInAddress } from "./sign_in";

test.each([
  [address("/fleet", { text: "a b&c", sort: undefined, after: "" }), "/fleet?text=a+b%26c"],
  [address("/fleet"), "/fleet"],
  [path("fleet", "team-a", "Job", "a/b"), "/fleet/team-a/Job/a%2Fb"],
])("%s", (made, wanted) => {
  expect(made).toBe(wanted);
});

test.each([
  ["sign in: /session/start", "/session/start?then=%2Freports%2Fa%2Fb%3Frank%3D3"],
  ["come through the proxy that signs you in", undefined],
])("who is not signed in: %s", (nextStep, wanted) => {
  expect(signInAddress(nextStep, { pathname: "/reports/a/b", search: "?rank=3" })).toBe(wanted);
});

describe("the address of a view", () => {
  test("is read as it was written", () => {
    const search = { rank: "3", ranks: "idle", measure: "compute", sort: "-mean", sigma: "2.5", outliers: "only" };
    expect(readReportSearch(search)).toEqual({ ...search, rank: 3, sigma: 2.5 });
  });
  test("without what cannot be read, and still opens", () => {
    expect(readReportSearch({ rank: "-1", sigma: "99", ranks: "nonsense", sort: "a;b", unknown: "x" })).toEqual({});
    expect(readFleetSearch({ text: "x".repeat(600), namespace: "team-a" })).toEqual({ namespace: "team-a" });
    expect(readRequestsSearch({ capture: "old", state: "Running" })).toEqual({ state: "Running" });
  });
});

function ledger(rank: number[], state: string[]): LedgerColumns {
  const texts = rank.map(() => "");
  const times = rank.map(() => null);
  return {
    rank, state, process_id: texts, reason: texts, message: texts, node_name: texts, pod_name: texts,
    asked_ns: times, armed_ns: times, started_ns: times, written_ns: times, uploaded_ns: times, failed_ns: times,
    trace_bytes: rank, compressed_bytes: rank,
  };
}

test("a change of the ledger replaces its lines and appends new ones, and leaves the old ledger as it was", () => {
  const before = ledger([0, 1], ["ASKED", "ASKED"]);
  const after = withLines(before, [1, 2], ledger([1, 2], ["UPLOADED", "ASKED"]));
  expect(after.rank).toEqual([0, 1, 2]);
  expect(after.state).toEqual(["ASKED", "UPLOADED", "ASKED"]);
  expect(before.state).toEqual(["ASKED", "ASKED"]);
});
