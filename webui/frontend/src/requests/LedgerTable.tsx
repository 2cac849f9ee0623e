import { useState } from "react";
import type { LedgerColumns } from "@/api/models";
import { type Column, DataTable } from "@/parts/DataTable";
import { Name } from "@/parts/Name";
import { sortRows } from "@/parts/sorting";
import { formatDuration } from "@/units/durations";
import { formatBytes } from "@/units/quantities";
import { explainReason, stateOf } from "./ledgerStates";

interface Props {
  ledger: LedgerColumns;
  onlyFailed: boolean;
  selected: number | undefined;
  onSelect: (line: number) => void;
}

export function LedgerTable({ ledger, onlyFailed, selected, onSelect }: Props) {
  const [sort, setSort] = useState("rank");
  const lines = ledger.rank.map((_, line) => line).filter((line) => !onlyFailed || ledger.state[line] === "FAILED");
  const value = (line: number, id: string) => ledger[id as keyof LedgerColumns][line];
  return (
    <DataTable<number>
      label="Ledger, a line per rank"
      columns={columns(ledger)}
      rows={sortRows(lines, sort, value)}
      rowKey={(line) => line}
      sort={sort}
      onSort={setSort}
      mostHeight={480}
      minWidth={900}
      isSelected={(line) => line === selected}
      onSelect={onSelect}
    />
  );
}

function columns(ledger: LedgerColumns): Column<number>[] {
  const time = (id: "armed_ns" | "started_ns" | "written_ns" | "uploaded_ns", header: string): Column<number> => ({
    id,
    header,
    width: "88px",
    numeric: true,
    sortable: true,
    explanation: "after the request was submitted",
    cell: (line) => formatDuration(ledger[id][line]),
  });
  return [
    { id: "rank", header: "Rank", width: "64px", numeric: true, sortable: true, cell: (line) => ledger.rank[line] },
    { id: "state", header: "State", width: "96px", sortable: true, cell: (line) => stateOf(ledger.state[line] ?? "").name },
    {
      id: "reason",
      header: "Reason",
      cell: (line) =>
        ledger.reason[line] ? (
          <span className="verdict-cell">
            <a href={explainReason(ledger.reason[line] ?? "")} rel="noreferrer">
              {ledger.reason[line]}
            </a>{" "}
            <Name text={ledger.message[line] ?? ""} most={300} />
          </span>
        ) : null,
    },
    { id: "node_name", header: "Node", width: "130px", sortable: true, cell: (line) => <Name text={ledger.node_name[line] || "–"} most={20} /> },
    { id: "pod_name", header: "Pod", width: "130px", sortable: true, cell: (line) => <Name text={ledger.pod_name[line] || "–"} most={20} /> },
    time("armed_ns", "Armed"),
    time("started_ns", "Started"),
    time("written_ns", "Written"),
    time("uploaded_ns", "Uploaded"),
    { id: "compressed_bytes", header: "Size", width: "88px", numeric: true, sortable: true, cell: (line) => formatBytes(ledger.compressed_bytes[line] || null) },
  ];
}
