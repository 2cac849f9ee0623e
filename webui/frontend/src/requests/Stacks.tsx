// Where the ranks of a job were: the verdict of the latest stack sample, and a group for each place, opened by a click.
import { useQuery } from "@tanstack/react-query";
import type { RankGroup, StackFrame, StacksLook } from "@/api/models";
import { stacksQuery } from "@/api/queries";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";
import { Loaded } from "@/parts/States";
import { formatDate } from "@/units/dates";
import { formatDuration } from "@/units/durations";
import { plural } from "@/units/quantities";
import { capital } from "@/units/text";

export function Stacks({ namespace, uid }: { namespace: string; uid: string }) {
  const query = useQuery(stacksQuery(namespace, uid));
  return (
    <Loaded query={query} what="the stacks" rows={6}>
      {({ looks }) => (
        <>
          {looks
            .map((look, index) => <Look key={look.at_unix_ns ?? index} look={look} number={index} count={looks.length} />)
            .toReversed()}
        </>
      )}
    </Loaded>
  );
}

function Look({ look, number, count }: { look: StacksLook; number: number; count: number }) {
  const title = count > 1 ? `Stacks, sample ${number + 1} of ${count}` : "Stacks";
  return (
    <Section id={`stacks-${number}`} title={title} note={formatDate(look.at_unix_ns)}>
      <p>
        <strong>
          <Name text={look.sentence} most={600} />
        </strong>
      </p>
      {look.stands_ns > 0 && look.cause !== "moves" && <p className="quiet">It had stood for {formatDuration(look.stands_ns)}.</p>}
      {look.may_go_on && look.cause !== "moves" && <p className="quiet">This may be work that takes long: nothing here proves that the job hangs.</p>}
      <p className="next-step">{capital(look.advice)}</p>
      {look.groups.map((group) => (
        <Group key={group.ranks[0]} group={group} />
      ))}
      {look.groups_left_out > 0 && <p className="quiet">{plural(look.groups_left_out, "group")} more: kubectl fleetprof stacks -o json has all.</p>}
    </Section>
  );
}

function Group({ group }: { group: RankGroup }) {
  const [innermost] = group.frames;
  const own = group.frames.find((frame) => frame.is_own) ?? innermost;
  const more = group.rank_count - group.ranks.length;
  return (
    <details open={group.is_named}>
      <summary>
        {plural(group.rank_count, "rank")} ({group.ranks.slice(0, 12).join(", ")}
        {(more > 0 || group.ranks.length > 12) && ", …"}) {own ? <Line frame={own} /> : <span className="quiet">no stack; the kernel says {group.state || "nothing"}</span>}
      </summary>
      <p className="quiet">
        On <Name text={group.nodes.slice(0, 8).join(", ") || "a node that is not known"} most={200} />
      </p>
      <Frames frames={group.frames} />
      {group.threads.map((thread, index) => (
        // oxlint-disable-next-line react/no-array-index-key
        <details key={index}>
          <summary>
            Thread <Name text={thread.name} most={60} /> of rank {group.ranks[0]}
          </summary>
          <Frames frames={thread.frames} />
        </details>
      ))}
    </details>
  );
}

function Frames({ frames }: { frames: StackFrame[] }) {
  return (
    <ol className="frames">
      {frames.map((frame, index) => (
        // oxlint-disable-next-line react/no-array-index-key
        <li key={index} className={frame.is_own ? undefined : "quiet"}>
          <Line frame={frame} />
        </li>
      ))}
    </ol>
  );
}

function Line({ frame }: { frame: StackFrame }) {
  return (
    <>
      <Name text={`${frame.file}:${frame.line}`} most={72} code /> in <Name text={frame.function} most={60} code />
    </>
  );
}
