/** The search in the arguments of a rank's events: it reads the whole trace, so the reader asks for it. */

import { useEffect, useRef, useState } from "react";
import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import { plural } from "@/units/quantities";
import type { FoundArguments, FoundEventArguments } from "../worker/arguments";

interface Props {
  rank: number;
  words: string;
  /** Starts a search, and says how to give it up. */
  search: (rank: number, words: string) => { answer: Promise<FoundArguments>; cancel: () => void };
  onChoose: (event: FoundEventArguments) => void;
}

const SHOWN = 8;

export function Arguments({ rank, words, search, onChoose }: Props) {
  const [found, setFound] = useState<FoundArguments | null>(null);
  const [message, setMessage] = useState("");
  const cancel = useRef<(() => void) | null>(null);
  useEffect(() => () => cancel.current?.(), []);
  const start = async () => {
    setMessage(`Reading the trace of rank ${rank} …`);
    const under = search(rank, words);
    cancel.current = under.cancel;
    try {
      setFound(await under.answer);
      setMessage("");
    } catch (error) {
      setMessage(error instanceof Error ? error.message : String(error));
    } finally {
      cancel.current = null;
    }
  };
  return (
    <>
      {found && (
        <ul aria-label="Arguments found">
          <li>
            {plural(found.count, "event")} of rank {rank} with this in the arguments
            {found.whole ? "" : ", in the part of the trace that can be read"}
            {found.count > 0 && ":"}
          </li>
          {found.events.slice(0, SHOWN).map((one) => (
            <li key={`${one.start} ${one.name} ${one.text}`}>
              <button type="button" onClick={() => onChoose(one)}>
                <Name text={one.name} most={44} /> · {formatDuration(one.duration)} ·{" "}
                <span className="quiet">
                  <Name text={one.text} most={90} />
                </span>
              </button>
            </li>
          ))}
          {found.count > SHOWN && <li>and {plural(found.count - Math.min(SHOWN, found.events.length), "event")} more</li>}
        </ul>
      )}
      <p className="quiet" role="status">
        {message}
        {!found && !message && (
          <button type="button" onClick={() => void start()}>
            Search the arguments on rank {rank}
          </button>
        )}
      </p>
    </>
  );
}
