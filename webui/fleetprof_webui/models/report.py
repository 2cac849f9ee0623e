"""One report: its answer first, small whatever the number of ranks."""

from typing import Annotated

from fleetprof_api.report.capture_cost import CaptureCost
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.heterogeneity import Box
from fleetprof_api.report.report import KindTotal, Problem
from fleetprof_api.report.stragglers import ClockAlignment, SlowLink, Straggler, Undecided
from msgspec import Meta

from fleetprof_webui.models.model import Model, UnixNs


class Answer(Model):
    """The answer that a reader came for."""

    sentence: str
    evidence: list[str]
    next_step: Annotated[str, Meta(description='what to try; ""')]


class RequestFacts(Model):
    """The request, and its end; null in a report of a folder of traces."""

    name: str
    target: str
    requester: str
    start_mode: str
    asked_first_step: int | None
    asked_iterations: int | None
    asked_duration_ns: int | None
    collect: list[str] | None
    submitted_unix_ns: UnixNs | None
    armed_unix_ns: UnixNs | None
    completed_unix_ns: UnixNs | None
    outcome: str
    message: str


class Facts(Model):
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


class ReasonCount(Model):
    """The number of ranks that failed for one reason."""

    reason: str
    count: int
    ranks: Annotated[list[int], Meta(description="at most 8")]
    message: Annotated[str, Meta(description="of the first of them")]


class LedgerCounts(Model):
    """The ends of the ranks in counts; the lines are at the request."""

    targeted: int
    uploaded: int
    failed: int
    reasons: list[ReasonCount]


class StragglerSummary(Model):
    """The verdict without its per-rank tables."""

    verdict: str
    reason: str
    named: Annotated[list[Straggler], Meta(description="at most 16")]
    named_count: int
    cause: str | None
    candidate: Undecided | None
    gain: float
    smallest_gain: float | None
    fidelity: float | None
    transfer_share: float | None
    approximate: bool
    unidentifiable: list[str]


class EnergySummary(Model):
    """The energy of the devices."""

    rank_count: int
    mean_mj: Annotated[int, Meta(description="per iteration, over all ranks, mJ")]
    power_mw: Annotated[int | None, Meta(description="mean over iterations, mW")]


class File(Model):
    """Something to download."""

    name: Annotated[str, Meta(description="below files/")]
    size_bytes: int


class ReportPage(Model):
    """`GET /reports/{namespace}/{uid}`."""

    namespace: str
    uid: str
    version: Annotated[str, Meta(description="changes with the report: for caches")]
    title: str
    made_by: str
    made_unix_ns: UnixNs | None
    answer: Answer
    findings: list[Finding]
    totals: list[KindTotal]
    stragglers: StragglerSummary | None
    capture_cost: CaptureCost | None
    energy: EnergySummary | None
    energy_sentences: Annotated[
        list[str], Meta(description="of an iteration, a training sample, a GPU worse than its peers")
    ]
    request: RequestFacts | None
    facts: Facts
    ledger: LedgerCounts | None
    whole_traces: Annotated[list[int], Meta(description="ranks whose trace is most worth a look, at most 16")]
    problems: Annotated[list[Problem], Meta(description="at most 50, the most frequent first")]
    problem_count: int
    files: Annotated[list[File], Meta(description="of the report and of the first 16 ranks")]
    has_timeline: bool
    has_tables: Annotated[bool, Meta(description="this service can write tables.zip")]


class StragglerPage(Model):
    """Who is late, whole: `GET /reports/{namespace}/{uid}/stragglers`."""

    verdict: str
    sentence: Annotated[str, Meta(description="the verdict in words, as the terminal and report.html have it")]
    reason: str
    ranks: list[Straggler]
    order: list[Straggler]
    candidate: Undecided | None
    slow_links: list[SlowLink]
    iterations: list[int]
    matched_by: str
    operations: int
    unmatched: int
    not_captured: list[int]
    clocks: ClockAlignment | None


class MeasureBox(Model):
    """The box plot of one measure over ranks, and how its values spread over ranks and iterations."""

    measure: str
    unit: str
    box: Box
    density: Annotated[
        list[int], Meta(description="values of all ranks and iterations in equal bins from the smallest to the largest")
    ]
    density_from: Annotated[int, Meta(description="the smallest of them")]
    density_to: Annotated[int, Meta(description="the largest of them")]


class BoxesOfKind(Model):
    """The ranks of one kind."""

    kind: str
    boxes: list[MeasureBox]


class BoxPage(Model):
    """The differences between ranks: `GET /reports/{namespace}/{uid}/boxes`."""

    sections: list[BoxesOfKind]
