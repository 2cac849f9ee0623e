// Two reports side by side: is the job faster, by how much, and what changed, each with a test behind it.
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import type { Diff } from "@/api/models";
import { diffQuery } from "@/api/queries";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Empty, Loaded } from "@/parts/States";
import { formatMillis } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { formatMeasure, formatShare, plural } from "@/units/quantities";
import { DiffPicture } from "./Picture";
import { DiffTables } from "./DiffTables";

export function DiffPage() {
  const { base, new: changed, order } = useSearch({ from: "/diff" });
  return (
    <div className="page">
      <title>Comparison · fleetprof</title>
      <nav className="crumbs" aria-label="Place">
        <Link to="/fleet">Fleet</Link>
      </nav>
      <header className="page-head">
        <h1>Comparison</h1>
      </header>
      {base && changed ? (
        <Comparison base={base} changed={changed} order={order ?? "time"} />
      ) : (
        <Empty title="A comparison needs two reports">
          <p>
            Choose them in the <Link to="/fleet">fleet</Link>: “Compare” in one row, “with this” in another.
          </p>
        </Empty>
      )}
    </div>
  );
}

function Comparison({ base, changed, order }: { base: string; changed: string; order: "given" | "time" }) {
  const query = useQuery(diffQuery(base, changed, order));
  return (
    <Loaded query={query} what="the comparison" rows={8}>
      {(diff) => {
        // The service may have turned the sides round: each says whose it is.
        const [before, after] = diff.before.uid === uidOf(changed) && diff.after.uid === uidOf(base) ? [changed, base] : [base, changed];
        return (
        <>
          <section className={`verdict verdict-${diff.verdict === "slower" ? "named" : "calm"}`}>
            <h2 className="verdict-sentence">{sentence(diff)}</h2>
            {diff.reasons.length > 0 && <Lines lines={diff.reasons} />}
          </section>
          <div className="sides">
            <Side name="Before" side={diff.before} at={before} />
            <Side name="After" side={diff.after} at={after} />
          </div>
          <p>
            <Link to="/diff" search={{ base: after, new: before, order: "given" }} className="button small">
              Swap
            </Link>{" "}
            <span className="quiet">{orderOf(diff)}</span>
          </p>
          {diff.notes.length > 0 && (
            <Section id="notes" title="What may explain a change">
              <Lines lines={diff.notes} />
            </Section>
          )}
          {diff.unprofiled && (
            <p>
              Without the profiler: {formatDuration(diff.unprofiled.before_ns)} before, {formatDuration(diff.unprofiled.after_ns)} after (
              {plural(diff.unprofiled.before_iterations, "iteration")} and {plural(diff.unprofiled.after_iterations, "iteration")}).
            </p>
          )}
          {diff.comparable && <DiffPicture diff={diff} before={before} after={after} />}
          {diff.comparable && <DiffTables diff={diff} />}
          {diff.method && <p className="quiet">{diff.method}</p>}
        </>
        );
      }}
    </Loaded>
  );
}

const uidOf = (reference: string) => reference.split("/")[1] ?? "";

function orderOf({ before, after }: Diff): string {
  const [first = 0, second = 0] = [before.asked_unix_ns, after.asked_unix_ns];
  if (first === 0 || second === 0) return "The reports do not say when they were captured; “Before” is the one that was chosen first.";
  return first > second ? "“Before” is the later capture: a change reads backwards." : "“Before” is the earlier capture.";
}

/** The verdict in one sentence. */
export function sentence(diff: Pick<Diff, "comparable" | "verdict" | "change" | "minimum_effect">): string {
  if (!diff.comparable) return "These two reports cannot be compared.";
  const by = diff.change == null ? "" : ` by ${formatShare(Math.abs(diff.change))}`;
  switch (diff.verdict) {
    case "slower":
      return `Iterations became slower${by}.`;
    case "faster":
      return `Iterations became faster${by}.`;
    case "not_shown":
      return `No change of the iteration time is shown: it is within noise, or below ${formatShare(diff.minimum_effect)}.`;
    default:
      return "There are too few iterations to judge the iteration time.";
  }
}

function Lines({ lines }: { lines: readonly string[] }) {
  return (
    <ul>
      {lines.map((line) => (
        <li key={line}>
          <Name text={line} most={600} />
        </li>
      ))}
    </ul>
  );
}

function Side({ name, side, at }: { name: string; side: Diff["before"]; at: string }) {
  const [namespace = "", uid = ""] = at.split("/");
  return (
    <section className="panel">
      <h2>{name}</h2>
      <p>
        <Link to="/reports/$namespace/$uid" params={{ namespace, uid }}>
          <Name text={side.title || at} most={60} />
        </Link>
      </p>
      {(side.asked_unix_ns ?? 0) > 0 && <p className="quiet">captured {formatMillis((side.asked_unix_ns ?? 0) / 1e6)}</p>}
      <p className="big">{formatMeasure(side.iteration_ns, "ns")}</p>
      <p className="quiet">
        {plural(side.ranks, "rank")} · {plural(side.iterations, "iteration")} ·{" "}
        {side.devices.length > 0 && (
          <>
            <Name text={side.devices.join(", ")} most={40} /> ·{" "}
          </>
        )}
        <Name text={side.torch_versions.length > 0 ? `PyTorch ${side.torch_versions.join(", ")}` : "unknown version of PyTorch"} most={40} />
      </p>
    </section>
  );
}
