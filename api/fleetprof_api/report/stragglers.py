"""The section `stragglers` of a report: who holds the job up, why, and what mending it is worth.

Guarantees: part of `report.json` and its schema; gains are shares of the iteration time, durations integer nanoseconds.
Formulas: docs/measures.md#stragglers.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.code_place import PlaceInCode

Cause = Literal[
    "data_loading",
    "host",
    "device_wait",
    "garbage_collection",
    "cpu_contention",
    "unequal_work",
    "slow_gpu",
    "throttling",
    "network",
    "stage_imbalance",
    "mixed",
]


class Evidence(msgspec.Struct, kw_only=True, frozen=True):
    """One number that speaks for a cause, beside what is usual (the median of the peers)."""

    measure: str
    value: float
    usual: float
    unit: str
    iterations: Annotated[list[int], Meta(description="indices of the iterations concerned; empty: all")] = []


class Straggler(msgspec.Struct, kw_only=True, frozen=True):
    """One rank that the others wait for. Formulas: docs/measures.md#stragglers."""

    rank: int
    lateness_ns: Annotated[int, Meta(description="mean wait of the other ranks for it, per iteration, ns", ge=0)]
    cause: Cause
    evidence: list[Evidence] = []
    gain: Annotated[
        float, Meta(description="share of the iteration time that goes when it is as fast as its peers")
    ] = 0.0
    gain_alone: Annotated[
        float, Meta(description="the same with all other stragglers already at their peers' pace")
    ] = 0.0
    pattern: Annotated[
        Literal["persistent", "intermittent"], Meta(description="in three quarters of the iterations, or in some")
    ] = "persistent"
    every: Annotated[
        int, Meta(description="intermittent: late once in so many iterations; 0: without such a rhythm", ge=0)
    ] = 0
    peers: Annotated[int, Meta(description="ranks that do the same work; 0: measured by itself", ge=0)] = 0
    host: Annotated[str, Meta(description="where it ran, of a job on several hosts; empty: not known")] = ""
    place: Annotated[
        PlaceInCode | None, Meta(description="where it was while its peers were further; null: not known")
    ] = None


class Undecided(msgspec.Struct, kw_only=True, frozen=True):
    """A rank that seems late, where noise leaves it open. Formulas: docs/measures.md#stragglers."""

    rank: int
    gain: Annotated[float, Meta(description="its own time beyond its peers', share of the iteration time")]
    gain_low: Annotated[float, Meta(description="lower end of the 99 % interval of all ranks together; may be below 0")]
    gain_high: Annotated[float, Meta(description="upper end")]
    iterations: Annotated[int, Meta(description="iterations that it was measured in", ge=0)]
    iterations_needed: Annotated[
        int, Meta(description="iterations that would name it in most cases, if it is late", ge=0)
    ]


class LateHost(msgspec.Struct, kw_only=True, frozen=True):
    """A host nearly all of whose ranks are late: one finding about the host. Formulas: docs/measures.md#stragglers."""

    name: Annotated[str, Meta(description="the node, or the machine where no node is known")]
    ranks: Annotated[list[int], Meta(description="its late ranks, in order of their numbers")]
    captured: Annotated[int, Meta(description="ranks of the host in this report", ge=0)]
    others: Annotated[int, Meta(description="hosts in this report that are not late", ge=0)]
    cause: Cause
    gain_alone: Annotated[
        float, Meta(description="what its latest rank costs with all other stragglers at their peers' pace")
    ] = 0.0


class SlowLink(msgspec.Struct, kw_only=True, frozen=True):
    """A process group whose transfers take longer than those of its sister groups."""

    ranks: list[int]
    collective: str
    factor: Annotated[float, Meta(description="transfer time over that of the sister groups")]
    operations: int
    transfer_ns: Annotated[int, Meta(description="mean transfer, ns", ge=0)] = 0
    usual_ns: Annotated[int, Meta(description="median of the sister groups, ns", ge=0)] = 0


class PipelineBubbles(msgspec.Struct, kw_only=True, frozen=True):
    """The time that a pipeline's devices wait because of its schedule. Formulas: docs/measures.md#pipeline-bubbles."""

    share: Annotated[
        float,
        Meta(description="share of the iteration that a device waits for other stages if no rank is late, mean of all"),
    ]
    ideal_share: Annotated[
        float | None,
        Meta(description="the same of 1F1B with as many equal stages, (p - 1) / (v m + p - 1); null: m is not known"),
    ] = None
    stages: Annotated[int, Meta(description="p", ge=2)]
    microbatches: Annotated[
        int | None, Meta(description="m, batches that pass through the stages in an iteration; null: not known")
    ] = None
    chunks: Annotated[int, Meta(description="v, parts of the model on each stage; more than 1: interleaved", ge=1)] = 1


class ClockAlignment(msgspec.Struct, kw_only=True, frozen=True):
    """The fit of the ranks' clocks onto one, for merged traces; no verdict rests on it."""

    residual_median_ns: Annotated[
        int, Meta(description="median distance of a rank's end of a collective from the ranks' median end, ns", ge=0)
    ]
    residual_most_ns: Annotated[int, Meta(description="the largest of these distances, ns", ge=0)]
    unaligned: Annotated[list[int], Meta(description="ranks that share no operation that all leave together")] = []


class Stragglers(msgspec.Struct, kw_only=True, frozen=True):
    """The ranks that hold the job up, or that none does. `ranks` holds those named, in order."""

    verdict: Annotated[
        Literal["straggler", "heavy_stage", "slow_link", "moving_imbalance", "nobody", "undecided", "not_judged"],
        Meta(description="undecided: too noisy, with `candidate` if known; not_judged: not possible; see `reason`"),
    ] = "not_judged"
    reason: str = ""
    ranks: list[Straggler] = []
    hosts: Annotated[
        list[LateHost], Meta(description="hosts nearly all of whose ranks are in `ranks`, while others' are not")
    ] = []
    order: Annotated[
        list[Straggler], Meta(description="ranks that were replayed and not named, by what they cost; at most 16")
    ] = []
    cause: Annotated[
        Cause | None, Meta(description="moving_imbalance: what it is that moves from rank to rank; else null")
    ] = None
    candidate: Undecided | None = None
    smallest_gain: Annotated[
        float | None,
        Meta(
            description="what a rank would have to cost to be named here in four of five cases, share of the iteration"
        ),
    ] = None
    lasting_gain: Annotated[
        float | None,
        Meta(description="what of `smallest_gain` no number of iterations lowers: the ranks themselves differ"),
    ] = None
    low_floor_iterations: Annotated[
        int | None,
        Meta(description="iterations that lower `smallest_gain` to 5 %; null: not known, or a thousand do not"),
    ] = None
    slow_links: list[SlowLink] = []
    gain: Annotated[
        float, Meta(description="share of the iteration time that goes when all that is named is mended")
    ] = 0.0
    approximate: Annotated[
        bool,
        Meta(description="gains are rough: the replay is off by more than 3 %, or launches or ranks were not recorded"),
    ] = False
    fidelity: Annotated[float | None, Meta(description="replayed over measured length of the window")] = None
    transfer_share: Annotated[
        float | None,
        Meta(description="of the ranks' time in operations: the shortest of each one; the rest is waiting"),
    ] = None
    pipeline: Annotated[
        PipelineBubbles | None, Meta(description="null: the ranks are in no pipeline, or in several of another shape")
    ] = None
    iterations: Annotated[list[int], Meta(description="indices of the iterations that all ranks hold")] = []
    matched_by: str = ""
    operations: Annotated[int, Meta(description="operations of these iterations, over all ranks", ge=0)] = 0
    unmatched: Annotated[int, Meta(description="of them without their partners: not used", ge=0)] = 0
    not_captured: Annotated[list[int], Meta(description="ranks of the groups that were not captured")] = []
    clocks: ClockAlignment | None = None
    unidentifiable: Annotated[list[str], Meta(description="what these traces cannot tell")] = []
