/** What is under the pointer or chosen, in words: the whole name, when, how long, how many it stands for, its launch. */

import { Name } from "@/parts/Name";
import { formatAxisTime, formatDuration } from "@/units/durations";
import { className } from "../draw/classes";
import { launchedBy, sumLaunched } from "../layout/launches";
import type { Rectangle } from "../layout/rectangles";
import type { RankScene } from "../layout/scene";
import { trackLabel } from "../layout/tracks";
import { countNamed } from "../search";

interface Props {
  rank: number;
  scene: RankScene;
  lane: number;
  rectangle: Rectangle;
  /** Also what stands nowhere else: the whole name, when it begins and ends. */
  whole?: boolean;
}

const MOST_LAUNCHED = 6;

export function Details({ rank, scene, lane, rectangle: one, whole = false }: Props) {
  const { header } = scene;
  const cls = header.classes[header.names.cls[one.name]!]!;
  const launch = one.tile.launch?.[one.row] ?? Number.NaN;
  const count = header.names.count[one.name]!;
  const of = countNamed(header, header.names.text[one.name]!);
  const covered = one.tile.covered?.[one.row];
  return (
    <>
      <p>
        <strong>
          <Name text={header.names.short[one.name] || header.names.text[one.name]!} most={240} />
        </strong>
      </p>
      {whole && header.names.short[one.name] && (
        <p className="quiet">
          <Name text={header.names.text[one.name]!} most={2000} code />
        </p>
      )}
      <p>
        {formatDuration(one.duration)} · {className(cls)} · rank {rank},{" "}
        <Name text={trackLabel(header, header.lanes.track[lane]!)} most={60} />
      </p>
      <p>
        {of.toLocaleString("en")} times on rank {rank}
        {count < of && `, ${count.toLocaleString("en")} of them as ${className(cls)}`},{" "}
        {formatDuration(header.names.total_ns[one.name]!)} together
        {Number.isNaN(launch) ? "" : ` · launched ${formatDuration(one.start - launch)} before it began`}
      </p>
      {whole && (
        <p>
          begins at {formatAxisTime(one.start + scene.offset, 1000)}, ends at {formatAxisTime(one.start + one.duration + scene.offset, 1000)} of the timeline
        </p>
      )}
      {!whole && <Launches scene={scene} lane={lane} rectangle={one} />}
      {one.count > 1 && (
        <p>
          the longest of {one.count.toLocaleString("en")} here
          {covered ? `, which fill ${Math.round((covered / 255) * 100)} % of their time` : ""}: zoom in to see them
        </p>
      )}
    </>
  );
}

/** What an event of the host launches on the device, as far as it is in view. */
function Launches({ scene, lane, rectangle }: Pick<Props, "scene" | "lane" | "rectangle">) {
  const launched = launchedBy(scene, lane, rectangle);
  if (launched.length === 0) return null;
  const sums = sumLaunched(launched);
  const { short, text } = scene.header.names;
  return (
    <p>
      launches{" "}
      {sums.slice(0, MOST_LAUNCHED).map(({ name, count, totalNs }, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <Name text={short[name] || text[name]!} most={60} />
          {count > 1 && ` × ${count.toLocaleString("en")}`} ({formatDuration(totalNs)})
        </span>
      ))}
      {sums.length > MOST_LAUNCHED && ` and ${sums.length - MOST_LAUNCHED} names more`}
    </p>
  );
}
