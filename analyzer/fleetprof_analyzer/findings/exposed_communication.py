"""No computation hides the communication: whether ranks wait or send, as far as sizes and times in the report tell.

Guarantees: pure; says nothing where it is not known whether ranks wait or send, nor on CPU-only ranks whose cores are
busy: there a transfer cannot be told from the wait for a core. A rank's fault, which makes the others wait, is told
with the rank, and not once more here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fleetprof_api.report.report_tables import CommunicationStatistics
from fleetprof_api.report.stragglers import PipelineBubbles, Stragglers

from fleetprof_analyzer.findings.busy_cores import are_cores_busy
from fleetprof_analyzer.findings.finding import (
    MOST_NAMES,
    UNEVEN,
    FindingRule,
    MeasuredFinding,
    RanksOfKind,
    find_uneven,
)
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.words.bubbles import say_bubbles

_SMALL_BYTES: Final = 1 << 20  # a message below it takes about as long as an empty one (docs/measures.md#findings)
OTHER_KIND: Final = "other"
"""The kind of communication whose kernels' names do not tell what it is."""
_BUCKETED: Final = frozenset(("all_reduce", "reduce_scatter", "all_gather"))
_BEYOND_IDEAL: Final = 0.05
_NO_SIZE: Final = "no size: look at what runs beside the longest"
EXPOSED: Final = SentenceGuard(
    place="finding exposed_communication", figure="totals.time_ns.exposed_communication", whole="the devices' time",
    least_permille=100, words="no computation hides the communication", part="communication",
)  # fmt: skip
SENDING: Final = SentenceGuard(
    place="finding exposed_communication: send less", figure="stragglers.transfer_share",
    whole="the time in collectives", least_permille=500, words="send fewer and larger messages, or fewer bytes",
    below="the ranks wait for each other in their collectives",
)  # fmt: skip
SCHEDULE: Final = SentenceGuard(
    place="finding exposed_communication: pipeline", figure="stragglers.pipeline.share",
    whole="the exposed communication", least_permille=500, words="by the pipeline's schedule each device waits N %",
    below="what the transfers say",
)  # fmt: skip
SIZES: Final = SentenceGuard(
    place="finding exposed_communication: sizes", figure="communication.total_ns of known size",
    whole="the time in collectives", least_permille=500, words="of N KiB a call on average", below=_NO_SIZE,
)  # fmt: skip
LARGER_MESSAGES: Final = SentenceGuard(
    place="finding exposed_communication: larger messages", figure="communication.count of a rank",
    whole="its iterations", least_permille=1500, words="send fewer and larger messages", below=_NO_SIZE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExposedCommunication:
    """Communication that nothing hides: whether the ranks wait or send, and the mean size of a call.

    `mean_bytes` is None where most of the time has no size; `ranks` is how many were captured. They wait by the
    "schedule" of a `pipeline`.
    """

    spent: Literal["not_known", "waiting", "schedule", "sending", "on_host"]
    mean_bytes: float | None = None
    ranks: int = 1
    pipeline: PipelineBubbles | None = None

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        match self.spent:
            case "not_known":
                if self.ranks > 1:
                    return (
                        f"{EXPOSED.words}; the ranks could not be compared, so whether they send or wait is not known",
                        "look in the timeline whether the ranks begin the longest together: if so they send, else they "
                        "wait for the last",
                    )
                return EXPOSED.words, "capture all ranks: one rank's trace does not tell sending from waiting"
            case "waiting":
                return (
                    SENDING.below,
                    "make work and pauses even over the ranks; sending takes the smaller part of that time",
                )
            case "schedule":
                assert self.pipeline is not None
                return _say_schedule(self.pipeline)
            case "on_host":
                return (
                    EXPOSED.words,
                    "leave each rank a core for sending beside those of its threads (OMP_NUM_THREADS), and capture "
                    "again",
                )
            case "sending":
                return _say_sending(self.mean_bytes)


def _say_schedule(found: PipelineBubbles) -> tuple[str, str]:
    is_uneven = found.ideal_share is not None and found.share > found.ideal_share + _BEYOND_IDEAL
    more = "run more microbatches in each iteration, or interleave more parts of the model"
    return say_bubbles(found), f"give all stages the same work; {more}" if is_uneven else more


def _say_sending(mean_bytes: float | None) -> tuple[str, str]:
    if mean_bytes is None:
        return EXPOSED.words, (
            "look in the timeline at what runs beside the longest: let it begin earlier, "
            "during the backward pass, or send less often (gradient accumulation)"
        )
    if mean_bytes < _SMALL_BYTES:
        size = f"{mean_bytes / 1024:,.0f} KiB"
        return f"{EXPOSED.words}, of {size} a call on average", "send fewer and larger messages (DDP: bucket_cap_mb)"
    size = f"{mean_bytes / (1 << 20):,.0f} MiB"
    return (
        f"{EXPOSED.words}, of {size} a call on average",
        "send fewer bytes (gradient accumulation, another sharding, a smaller data type), or send them during the "
        "backward pass",
    )


def judge_exposed(
    found: Stragglers | None,
    rows: Sequence[CommunicationStatistics],
    *,
    exposed: float,
    ranks: int,
    waits_for_cores: bool,
    iterations: int = 0,
) -> ExposedCommunication:
    """`exposed`: its share of the devices' time; `waits_for_cores`: the ranks have no device, and their cores are busy;
    `iterations`: of a rank, 0 where it is not known.

    Of a single rank nothing is known.
    """
    transfer_share = None if found is None else found.transfer_share
    if found is None or transfer_share is None:
        return ExposedCommunication("not_known", ranks=ranks)
    bubbles = found.pipeline
    if bubbles is not None and SCHEDULE.allows(bubbles.share, exposed):
        return ExposedCommunication("schedule", pipeline=bubbles)
    if not SENDING.allows(transfer_share, 1):
        return ExposedCommunication("waiting")
    if waits_for_cores:
        return ExposedCommunication("on_host")
    return ExposedCommunication("sending", _mean_bytes(rows, iterations))


def _mean_bytes(rows: Sequence[CommunicationStatistics], iterations: int) -> float | None:
    """The mean size of collectives that buckets or units fill; None if most have no size or none could be larger."""
    bucketed = [row for row in rows if row.kind in _BUCKETED]
    known = [(row.message_bytes, row.count, row.total_ns) for row in bucketed if row.message_bytes is not None]
    whole, calls = sum(row.total_ns for row in rows), sum(count for _, count, _ in known)
    if not calls or not SIZES.allows(sum(total for _, _, total in known), whole):
        return None
    mean = sum(size * count for size, count, _ in known) / calls
    of_rank = sum(row.count / max(1, row.ranks) for row in bucketed if row.message_bytes is not None)
    if mean < _SMALL_BYTES and iterations and not LARGER_MESSAGES.allows(of_rank, iterations):
        return None
    return mean


def _find(view: RanksOfKind) -> MeasuredFinding | None:
    report, total, ranks = view.report, view.total, view.ranks
    exposed, span = total.time_ns.exposed_communication, total.time_ns.span
    if view.held_up is not None or not EXPOSED.allows(exposed, span):
        return None
    known = [row for row in report.communication if row.kind != OTHER_KIND]
    longest = [f"{row.kind} {row.group}".strip() for row in known[:MOST_NAMES]]
    return MeasuredFinding(
        kind="exposed_communication",
        facts=judge_exposed(
            report.stragglers,
            report.communication,
            exposed=exposed / span,
            ranks=len(report.ranks),
            waits_for_cores=total.kind == "cpu" and are_cores_busy(ranks),
            iterations=max((len(rank.iterations) for rank in ranks), default=0),
        ),
        guard=EXPOSED,
        gain_permille=1000 * exposed // span,
        measure=EXPOSED.figure,
        value_ns=exposed,
        ranks=find_uneven(ranks, lambda rank: rank.time_ns.exposed_communication),
        names=list(dict.fromkeys(longest)),
    )


RULE: Final = FindingRule("exposed_communication", (EXPOSED, SENDING, SCHEDULE, SIZES, LARGER_MESSAGES, UNEVEN), _find)
