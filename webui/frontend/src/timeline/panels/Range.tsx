/** What ran in the measured time, summed by track, class and name on each open rank. */

import { useEffect, useState } from "react";
import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import { formatShare } from "@/units/quantities";
import { className } from "../draw/classes";
import type { RankHeader } from "../format/rank";
import type { RankScene } from "../layout/scene";
import { trackLabel } from "../layout/tracks";
import type { TimelineStore } from "../worker/store";
import type { RangeSums, Sum } from "../worker/sums";

interface Props {
  store: TimelineStore;
  mark: [number, number];
  ranks: ReadonlyMap<number, RankScene>;
  onSearch: (words: string) => void;
  onClear: () => void;
}

const MOST_NAMES = 8;

export function Range({ store, mark, ranks, onSearch, onClear }: Props) {
  const [start, end] = mark;
  return (
    <section className="timeline-range" aria-label="Measured time">
      <h2>
        {formatDuration(end - start)} measured{" "}
        <button type="button" className="small" onClick={onClear}>
          Clear
        </button>
      </h2>
      {ranks.size === 0 && <p className="quiet">Open a rank to see what it ran in this time.</p>}
      {[...ranks].map(([rank, { header, offset }]) => (
        <Sums key={rank} store={store} rank={rank} header={header} start={start - offset} end={end - offset} onSearch={onSearch} />
      ))}
    </section>
  );
}

interface SumsProps {
  store: TimelineStore;
  rank: number;
  header: RankHeader;
  start: number;
  end: number;
  onSearch: (words: string) => void;
}

function Sums({ store, rank, header, start, end, onSearch }: SumsProps) {
  const [found, setFound] = useState<RangeSums | null>(null);
  const [message, setMessage] = useState("");
  useEffect(() => {
    let isWanted = true;
    store.sums(rank, start, end).then(
      (sums) => isWanted && (setFound(sums), setMessage("")),
      (error: unknown) => isWanted && (setFound(null), setMessage(error instanceof Error ? error.message : String(error))),
    );
    return () => {
      isWanted = false;
    };
  }, [store, rank, start, end]);
  const { short, text } = header.names;
  return (
    <div role="group" aria-label={`Rank ${rank}`}>
      <h3>Rank {rank}</h3>
      {message && <p role="alert">{message}</p>}
      {found && found.names.length === 0 && <p className="quiet">It ran nothing in this time.</p>}
      {found && found.names.length > 0 && (
        <div className="timeline-sums">
          <SumTable title="By stream and thread" rows={found.tracks} whole={end - start} label={(track) => <Name text={trackLabel(header, track)} most={40} />} />
          <SumTable title="By class" rows={found.classes} whole={end - start} label={className} />
          <SumTable
            title="By name"
            rows={found.names.slice(0, MOST_NAMES)}
            whole={end - start}
            more={found.names.length - MOST_NAMES}
            label={(name) => (
              <button type="button" className="as-link" onClick={() => onSearch(text[name]!.slice(0, 200))}>
                <Name text={short[name] || text[name]!} whole={text[name]!} most={44} />
              </button>
            )}
          />
        </div>
      )}
    </div>
  );
}

interface TableProps<Key> {
  title: string;
  rows: Sum<Key>[];
  whole: number;
  more?: number;
  label: (key: Key) => React.ReactNode;
}

function SumTable<Key extends string | number>({ title, rows, whole, more = 0, label }: TableProps<Key>) {
  return (
    <table>
      <caption>{title}</caption>
      <tbody>
        {rows.map(({ key, count, totalNs }) => (
          <tr key={key}>
            <th scope="row">{label(key)}</th>
            <td>{formatDuration(totalNs)}</td>
            <td>{formatShare(totalNs / whole)}</td>
            <td className="quiet">{count.toLocaleString("en")} ×</td>
          </tr>
        ))}
        {more > 0 && (
          <tr>
            <td colSpan={4} className="quiet">
              and {more.toLocaleString("en")} names more
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}
