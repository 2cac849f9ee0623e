"""The comparison of two reports, before and after a change: what `fleetprof diff -o json` prints.

Guarantees: versioned; published as JSON Schema (api/schemas/diff.v1.schema.json); durations are integer nanoseconds,
energies integer millijoules; a verdict is given only by the test that `method` names. Definitions: docs/diff.md.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.report.heterogeneity import Unit

SCHEMA_VERSION: Final = 1
_SCHEMA_ID: Final = "https://fleetprof.io/schemas/diff.v1.schema.json"

Verdict = Literal["more", "less", "not_shown", "not_judged"]
VerdictField = Annotated[
    Verdict,
    Meta(description="not_shown: no more than noise, or too small to matter; not_judged: too little to tell"),
]


class Side(msgspec.Struct, kw_only=True, frozen=True):
    """One of the two reports, as far as it is compared."""

    title: str
    uid: str = ""
    asked_unix_ns: Annotated[int, Meta(description="when its capture was asked for; 0: not known")] = 0
    ranks: Annotated[int, Meta(description="ranks compared")]
    iterations: Annotated[int, Meta(description="iterations compared")]
    first_iteration: Annotated[int | None, Meta(description="number of the first of them")] = None
    iteration_ns: Annotated[int | None, Meta(description="their mean length over ranks, ns")] = None
    devices: list[str] = []
    torch_versions: list[str] = []


class MeasureChange(msgspec.Struct, kw_only=True, frozen=True):
    """One measure per iteration, mean over iterations and ranks."""

    measure: Annotated[str, Meta(description="a name of docs/measures.md#heterogeneity")]
    unit: Unit
    before: int
    after: int
    difference: int
    low: Annotated[int | None, Meta(description="interval of the difference, good for all measures together")] = None
    high: int | None = None
    p: Annotated[float | None, Meta(description="chance of so large a difference in any measure without a change")] = (
        None
    )
    verdict: VerdictField = "not_judged"


class UnprofiledChange(msgspec.Struct, kw_only=True, frozen=True):
    """Iteration time before each capture, without the profiler: medians of `capture_cost.before`."""

    before_ns: int
    after_ns: int
    before_iterations: int
    after_iterations: int
    difference_ns: int
    low_ns: int | None = None
    high_ns: int | None = None
    verdict: VerdictField = "not_judged"


class KernelChange(msgspec.Struct, kw_only=True, frozen=True):
    """Device work of one name, per rank and iteration."""

    name: str
    spoken_name: Annotated[str, Meta(description="its name as people say it, for display")]
    before_ns: Annotated[int, Meta(description="time per rank and iteration, ns", ge=0)]
    after_ns: Annotated[int, Meta(description="time per rank and iteration, ns", ge=0)]
    difference_ns: int
    before_count: Annotated[float, Meta(description="launches per rank and iteration", ge=0)]
    after_count: Annotated[float, Meta(description="launches per rank and iteration", ge=0)]
    before_mean_ns: Annotated[int, Meta(description="mean duration of a launch, ns", ge=0)]
    after_mean_ns: Annotated[int, Meta(description="mean duration of a launch, ns", ge=0)]
    p: Annotated[
        float | None, Meta(description="chance of so large a difference of the means in any kernel without a change")
    ] = None
    verdict: Annotated[VerdictField, Meta(description="of the mean duration of a launch")] = "not_judged"


class CollectiveChange(msgspec.Struct, kw_only=True, frozen=True):
    """Collectives of one kind, group and size, per rank and iteration. Not tested: docs/diff.md."""

    kind: str
    group: str = ""
    group_size: int | None = None
    message_bytes: int | None = None
    before_ns: Annotated[int, Meta(description="time per rank and iteration, waiting included, ns", ge=0)]
    after_ns: Annotated[int, Meta(description="time per rank and iteration, waiting included, ns", ge=0)]
    difference_ns: int
    before_count: Annotated[float, Meta(description="calls per rank and iteration", ge=0)]
    after_count: Annotated[float, Meta(description="calls per rank and iteration", ge=0)]
    before_bus_bytes_per_s: int | None = None
    after_bus_bytes_per_s: int | None = None


class ModuleChange(msgspec.Struct, kw_only=True, frozen=True):
    """A module's own work in the marked iteration of each capture, without modules inside. Not tested: docs/diff.md."""

    name: str
    before_ns: Annotated[int | None, Meta(description="null: only after")] = None
    after_ns: Annotated[int | None, Meta(description="null: only before")] = None
    difference_ns: int
    before_launches: Annotated[int, Meta(description="of its own, on the device", ge=0)] = 0
    after_launches: Annotated[int, Meta(description="of its own, on the device", ge=0)] = 0
    before_saved_bytes: Annotated[int | None, Meta(description="its own tensors for backward")] = None
    after_saved_bytes: int | None = None


class StragglerSide(msgspec.Struct, kw_only=True, frozen=True):
    """The ranks that held the job up in one report: `stragglers` of it."""

    verdict: Annotated[
        str, Meta(description="as in the report; undecided also where noise hides so much that nobody could be named")
    ]
    ranks: list[int] = []
    causes: list[str] = []
    gain: float = 0.0


class Diff(msgspec.Struct, kw_only=True, frozen=True):
    """Two reports compared. Where `comparable` is false, `reasons` say why, and nothing is compared."""

    schema_version: int = SCHEMA_VERSION
    made_by: str = ""
    comparable: bool
    reasons: list[str] = []
    notes: Annotated[list[str], Meta(description="what differs between the captures and may explain a change")] = []
    before: Side
    after: Side
    verdict: Annotated[
        Literal["slower", "faster", "not_shown", "not_judged"],
        Meta(description="of the iteration time: unprofiled where both captures hold it, else that of the captures"),
    ] = "not_judged"
    change: Annotated[float | None, Meta(description="by how much, as a share of the iteration time before")] = None
    unprofiled: UnprofiledChange | None = None
    measures: list[MeasureChange] = []
    kernels: Annotated[list[KernelChange], Meta(description="those that differ most, at most 20")] = []
    collectives: Annotated[list[CollectiveChange], Meta(description="those that differ most, at most 20")] = []
    modules: Annotated[
        list[ModuleChange], Meta(description="those that differ most, at most 20; empty where one has no modules")
    ] = []
    stragglers_before: StragglerSide | None = None
    stragglers_after: StragglerSide | None = None
    level: Annotated[float, Meta(description="chance of any false alarm in the whole comparison, at most")] = 0.05
    minimum_effect: Annotated[float, Meta(description="share of the iteration below which nothing is a change")] = 0.02
    method: str = ""


def json_schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of a comparison."""
    schema = msgspec.json.schema(Diff)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": _SCHEMA_ID, **schema}


def write_diff(diff: Diff) -> bytes:
    """UTF-8, indented, keys in the order of the schema."""
    return msgspec.json.format(msgspec.json.encode(diff), indent=1) + b"\n"
