/** What is under the pointer, in words: an event, an iteration, a piece of a stage, or a moment of a folded rank. */

import { Name } from "@/parts/Name";
import { formatDuration } from "@/units/durations";
import { formatMeasure, formatShare } from "@/units/quantities";
import { className } from "../draw/classes";
import type { Hit } from "../engine";
import type { Fleet } from "../format/fleet";
import { counterLabel } from "../layout/bands";
import { throttledAt, valueAt } from "../layout/counters";
import { classAt } from "../layout/courses";
import type { RankScene } from "../layout/scene";
import { partsOf } from "../layout/shares";
import { Details } from "./Details";

interface Props {
  fleet: Fleet;
  hit: Hit;
}

const DETAILS: Record<string, string> = {
  full: "Click to open or fold its events.",
  stages: "Its trace was not kept: only its iterations are here.",
  none: "Nothing of it is here.",
};

/** Whether there is something to say about what is under the pointer. */
export function says({ band, rectangle, span }: Hit): boolean {
  if (band.kind === "counter") return true;
  return band.kind === "lane" ? rectangle !== null : band.kind === "rank" || span >= 0;
}

export function Hover({ fleet, hit }: Props) {
  const { band, rank, scene, rectangle, span } = hit;
  if (band.kind === "rank") return <RankWords fleet={fleet} hit={hit} />;
  if (!scene || rank === null) return null;
  if (band.kind === "counter") return <CounterWords scene={scene} name={band.counter} rank={rank} at={hit.at} />;
  if (band.kind === "lane") return rectangle && <Details rank={rank} scene={scene} lane={band.lane} rectangle={rectangle} />;
  const { header } = scene;
  if (band.kind === "iterations") return <IterationWords fleet={fleet} rank={rank} index={header.iterations.index[span]!} />;
  const pieces = header.stage_pieces;
  const iteration = pieces.iteration[span]!;
  const stage = header.stages[pieces.stage[span]!]!.replace("_", " ");
  const duration = pieces.duration_ns[span]!;
  const whole = header.iterations.duration_ns[iteration]!;
  return (
    <>
      <p>
        <strong>{stage}</strong>
      </p>
      <p>
        {formatDuration(duration)} · {formatShare(duration / whole)} of iteration {header.iterations.index[iteration]} · rank {rank}
      </p>
      <p>Click to fit it into the view.</p>
    </>
  );
}

/** A quantity at a time, and why the device slowed itself. */
function CounterWords({ scene, name, rank, at }: { scene: RankScene; name: string; rank: number; at: number }) {
  const counter = scene.counters.find((one) => one.name === name);
  if (!counter) return null;
  const value = valueAt(counter.at, counter.values, at);
  return (
    <>
      <p>
        <strong>
          {counterLabel(name)} {formatMeasure(value, counter.unit)}
        </strong>
      </p>
      <p>
        rank {rank} · at most {formatMeasure(counter.most, counter.unit)}
      </p>
      {throttledAt(counter, at).map(([reason, share]) => (
        <p key={reason}>
          slowed itself by {reason}, {formatShare(share / 100)} of the time
        </p>
      ))}
    </>
  );
}

function RankWords({ fleet, hit: { band, rank, span, at } }: Props) {
  const { ranks, late, median_rank: median } = fleet.header;
  const name = rank === null ? "No rank" : `Rank ${rank}`;
  const role = rank !== null && late.includes(rank) ? " · late" : rank !== null && rank === median ? " · median" : "";
  return (
    <>
      <p>
        <strong>
          {name}
          {role}
        </strong>
        {ranks.host[band.row] && (
          <>
            {" on "}
            <Name text={ranks.host[band.row]!} most={60} />
          </>
        )}
      </p>
      {span >= 0 && <CellWords fleet={fleet} cell={span} />}
      {span >= 0 && <MomentWords fleet={fleet} row={band.row} cell={span} at={at} />}
      <p>{DETAILS[ranks.detail[band.row] ?? "none"]}</p>
    </>
  );
}

function IterationWords({ fleet, rank, index }: { fleet: Fleet; rank: number; index: number }) {
  const row = fleet.header.ranks.rank.indexOf(rank);
  const cell = fleet.cells.row!.findIndex((each, place) => each === row && fleet.cells.index![place] === index);
  return (
    <>
      <p>
        <strong>Rank {rank}</strong>
      </p>
      {cell >= 0 && <CellWords fleet={fleet} cell={cell} />}
      <p>Click to fit it into the view.</p>
    </>
  );
}

/** An iteration of a rank: how long it took, and what it was made of. */
function CellWords({ fleet: { header, cells }, cell }: { fleet: Fleet; cell: number }) {
  const duration = cells.duration_ns![cell]!;
  const stages = header.stages
    .map((stage): [string, number] => [stage, cells[`stage_${stage}_ns`]![cell]!])
    .filter(([, ns]) => ns > 0);
  return (
    <>
      <p>
        iteration {cells.index![cell]} · {formatDuration(duration)}
      </p>
      <Shares shares={partsOf(cells, cell).map(({ cls, share }) => [className(cls), share])} />
      <Shares shares={stages.map(([stage, ns]) => [stage.replace("_", " "), ns / duration])} />
    </>
  );
}

/** What most of the moment under the pointer was. */
function MomentWords({ fleet: { cells, courses }, row, cell, at }: { fleet: Fleet; row: number; cell: number; at: number }) {
  const share = (at - cells.start_ns![cell]!) / cells.duration_ns![cell]!;
  const cls = classAt(courses, row, cell, share);
  return <p>{cls ? `here mostly ${className(cls)}` : "its parts are side by side: when they were is not known"}</p>;
}

function Shares({ shares }: { shares: [name: string, share: number][] }) {
  if (shares.length === 0) return null;
  const longest = shares.toSorted(([, one], [, other]) => other - one);
  return <p>{longest.map(([name, share]) => `${name} ${formatShare(share)}`).join(", ")}</p>;
}
