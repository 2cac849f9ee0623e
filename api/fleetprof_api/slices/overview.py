"""The slice `overview`: the answer, what it rests on, and what was recorded; small whatever the number of ranks."""

from typing import Annotated

from msgspec import Meta

from fleetprof_api.report.capture_cost import CaptureCost
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import KindTotal, Problem
from fleetprof_api.report.stragglers import Straggler, Undecided
from fleetprof_api.slices.slice import Slice, SlicePart, UnixNs


class Answer(SlicePart):
    """The answer that a reader came for."""

    sentence: str
    evidence: list[str]
    next_step: Annotated[str, Meta(description='what to try; ""')]


class KeyFigure(SlicePart):
    """One number by its name, with a line of context."""

    name: str
    value: str
    context: str


class RequestFacts(SlicePart):
    """The request, and its end; null in a report of a folder of traces."""

    name: str
    target: str
    requester: str
    collect: list[str] | None
    submitted_unix_ns: UnixNs | None
    outcome: str
    message: str


class Facts(SlicePart):
    """The recording in counts; lists are cut to 16 and say what is most frequent first."""

    rank_count: int
    host_count: int
    world_size: int | None
    devices: list[str]
    torch_versions: list[str]
    iteration_count: Annotated[int, Meta(description="iterations of the rank that has most")]
    iteration_ns: Annotated[int | None, Meta(description="median length of an iteration, ns")]
    first_iteration: int | None
    event_count: int
    trace_bytes: int
    truncated_ranks: int
    start_spread_ns: int | None
    same_first_iteration: bool | None


class ReasonCount(SlicePart):
    """The number of ranks that failed for one reason."""

    reason: str
    count: int
    ranks: Annotated[list[int], Meta(description="at most 8")]
    message: Annotated[str, Meta(description="of the first of them")]


class LedgerCounts(SlicePart):
    """The ends of the ranks in counts; the lines are at the request."""

    targeted: int
    uploaded: int
    failed: int
    reasons: list[ReasonCount]


class StragglerSummary(SlicePart):
    """The verdict without its per-rank tables."""

    verdict: str
    named: list[Straggler]
    named_count: int
    cause: str | None
    candidate: Undecided | None
    gain: float


class Overview(Slice):
    """The head of a report's page. Where it is cut, findings, problems and named ranks are fewer."""

    title: str
    made_by: str
    made_unix_ns: UnixNs | None
    answer: Answer
    figures: list[KeyFigure]
    sentences: Annotated[list[str], Meta(description="on missing ranks, start, cost and problems")]
    findings: list[Finding]
    totals: list[KindTotal]
    stragglers: StragglerSummary | None
    capture_cost: CaptureCost | None
    power_mw: Annotated[int | None, Meta(description="mean power of all sampled devices within iterations, mW")]
    energy: Annotated[list[str], Meta(description="of an iteration, a training sample, a GPU worse than its peers")]
    throughput: list[str]
    efficiency: list[str]
    request: RequestFacts | None
    facts: Facts
    ledger: LedgerCounts | None
    whole_traces: Annotated[list[int], Meta(description="ranks whose trace is most worth a look, at most 16")]
    problems: Annotated[list[Problem], Meta(description="the most frequent first")]
    problem_count: int
