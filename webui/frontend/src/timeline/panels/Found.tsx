/** What the search found: names on the open ranks, lines of code in the report's samples; and what it looked through. */

import { useMemo, type ReactNode, type SubmitEvent } from "react";
import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import { formatShare, plural } from "@/units/quantities";
import { MOST_OPEN } from "../state";
import type { RankHeader } from "../format/rank";
import { searchLines, searchRanks, type FoundName, type SampledLine } from "../search";

interface Props {
  words: string;
  /** Of the open ranks whose events are here. */
  headers: ReadonlyMap<number, RankHeader>;
  /** Ranks that have events. */
  full: ReadonlySet<number>;
  sampled: readonly SampledLine[];
  /** The address of the report. */
  report: string;
  /** The search in the arguments of a rank. */
  inArguments: ReactNode;
  onSearch: (words: string) => void;
  onFind: (forward: boolean) => void;
  onOpen: (rank: number) => void;
}

const SHOWN = 5;
const RANKS_SHOWN = 4;

export function Found({ words, headers, full, sampled, report, inArguments, onSearch, onFind, onOpen }: Props) {
  const found = useMemo(() => searchRanks(headers, words), [headers, words]);
  const lines = useMemo(() => searchLines(sampled, words), [sampled, words]);
  return (
    <div className="timeline-found">
      <ul aria-label="Names found">
        {headers.size === 0 && <li>Open a rank to search its events.</li>}
        {headers.size > 0 && found.length === 0 && <li>No event has such a name.</li>}
        {found.slice(0, SHOWN).map((one) => (
          <li key={one.text}>
            <button type="button" onClick={() => onSearch(one.text.slice(0, 200))}>
              <Name text={one.text} most={44} /> · {one.count.toLocaleString("en")} × · {formatDuration(one.totalNs)}
              {headers.size > 1 && <span className="quiet"> · {countsOf(one)}</span>}
            </button>
          </li>
        ))}
        {found.length > SHOWN && <li>and {plural(found.length - SHOWN, "name")} more</li>}
        {found.length > 0 && (
          <li>
            <button type="button" onClick={() => onFind(false)}>
              ‹ Previous event
            </button>{" "}
            <button type="button" onClick={() => onFind(true)}>
              Next event ›
            </button>
          </li>
        )}
      </ul>
      {lines.length > 0 && (
        <ul aria-label="Lines of code found">
          {lines.slice(0, SHOWN).map((one) => (
            <li key={`${one.file}:${one.line} ${one.sentence}`}>
              <Name text={`${one.file}:${one.line}`} most={72} code /> in <Name text={one.function || "?"} most={60} code />
              {one.samples > 0 && `, ${formatShare(one.samples / one.ofSamples)} of the samples of ${sampledRanks(one)}`}:{" "}
              <Name text={one.sentence} most={200} />. <a href={`${report}#verdict-title`}>See the report</a>
            </li>
          ))}
          <li className="quiet">Samples are counted, so a sampled line has no place on the time axis.</li>
        </ul>
      )}
      {inArguments}
      <Covered headers={headers} full={full} sampled={sampled} onOpen={onOpen} />
    </div>
  );
}

/** Which ranks were searched, and a way to search one more. */
function Covered({ headers, full, sampled, onOpen }: Pick<Props, "headers" | "full" | "sampled" | "onOpen">) {
  const ranks = [...headers.keys()];
  const others = [...full].filter((rank) => !headers.has(rank));
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const rank = Number(new FormData(event.currentTarget).get("rank"));
    if (full.has(rank)) onOpen(rank);
  };
  return (
    <form className="quiet" onSubmit={submit}>
      Searched: all events of {ranks.length ? `the open ${ranks.length > 1 ? "ranks" : "rank"} ${ranks.join(", ")}` : "no rank"}
      {sampled.length > 0 && ", and the lines of code in the report's findings"}.
      {others.length > 0 && ranks.length < MOST_OPEN && (
        <>
          {" "}
          <label>
            {plural(others.length, "other rank")} with events:{" "}
            <input
              key={others[0]}
              name="rank"
              type="number"
              required
              min={Math.min(...full)}
              max={Math.max(...full)}
              defaultValue={others[0]}
              onInput={(event) => {
                const field = event.currentTarget;
                field.setCustomValidity(full.has(field.valueAsNumber) ? "" : "This rank has no events here.");
              }}
            />
          </label>{" "}
          <button type="submit">Search it too</button>
        </>
      )}
    </form>
  );
}

function countsOf({ ranks }: FoundName): string {
  const shown = ranks.slice(0, RANKS_SHOWN).map(({ rank, count }) => `rank ${rank}: ${count.toLocaleString("en")}`);
  return [...shown, ...(ranks.length > RANKS_SHOWN ? ["…"] : [])].join(", ");
}

function sampledRanks({ ranks }: SampledLine): string {
  return ranks.length ? `rank ${ranks.join(", ")}` : "all ranks";
}
