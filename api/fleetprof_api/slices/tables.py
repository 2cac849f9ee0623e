"""The slices that are tables: idle time, stages, communication, launches, memory, samples, modules, what-ifs."""

from typing import Annotated

from msgspec import Meta

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.prediction import Predictions
from fleetprof_api.report.rank_tables import MemoryPeak, OperatorLaunches
from fleetprof_api.report.report_tables import CommunicationStatistics, LaunchStatistics
from fleetprof_api.slices.slice import Ns, Slice, SlicePart, UnixNs


class IdleCauseRow(SlicePart):
    """One cause of idle time in words."""

    name: Annotated[str, Meta(description="a field of IdleCauses")]
    title: str
    time_ns: Ns
    meaning: Annotated[str, Meta(description="what it is, and its parts")]


class UnrecordedSum(SlicePart):
    """Time that was not recorded, for one reason."""

    words: str
    time_ns: Ns
    in_span: bool


class IdleOfKind(SlicePart):
    """The causes of idle time of one kind of ranks; they add up to it exactly."""

    kind: str
    idle_ns: Ns
    causes: list[IdleCauseRow]
    unrecorded: list[UnrecordedSum]


class IdleIteration(SlicePart):
    """The idle time of one iteration over all ranks."""

    iteration: int
    idle_ns: Ns
    causes: IdleCauses


class IdleSlice(Slice):
    """The causes of idle time: in sum, and of each iteration."""

    kinds: list[IdleOfKind]
    iterations: list[IdleIteration]


class StageRow(SlicePart):
    """One stage of the training loop over all ranks."""

    stage: str
    time_ns: Annotated[int, Meta(description="of the main thread, ns")]
    device_ns: Annotated[int, Meta(description="of the device work that was launched in it, ns")]


class SilenceRow(SlicePart):
    """A place in the loop at which the host ran no operator."""

    words: str
    time_ns: Ns
    place: PlaceInCode | None


class StageSlice(Slice):
    """The stages of the training loop, in their order."""

    stages: list[StageRow]
    silences: list[SilenceRow]


class CommunicationSlice(Slice):
    """Collectives by kind, group and size, over all ranks."""

    items: list[CommunicationStatistics]


class RankLaunches(SlicePart):
    """The launches of one rank's host."""

    rank: int | None
    source: str
    span_ns: Annotated[int, Meta(description="the rank's device time, busy and idle: what savings are a share of")]
    launches: LaunchStatistics


class LaunchSlice(Slice):
    """Launches by rank, and the operators that launch most."""

    ranks: list[RankLaunches]
    operators: list[OperatorLaunches]
    sampled: Annotated[list[str], Meta(description="ranks that recorded a sample of their operators only")]


class CopyRow(SlicePart):
    """Copies of one direction over all ranks."""

    direction: str
    count: int
    total_ns: Ns
    size: Annotated[str, Meta(description="in words, for some rows do not say theirs")]
    bytes_per_s: Annotated[int | None, Meta(description="rate of the middle rank")]


class RankPeak(SlicePart):
    """Peak memory of one device of a rank."""

    rank: str
    peak: MemoryPeak


class RecordingMemory(SlicePart):
    """The most memory of a trainer that recording took, in words."""

    peak: str
    peak_context: str
    kept: str
    kept_context: str


class MemorySlice(Slice):
    """Copies, peak memory of devices, the highest first, and the memory that recording took."""

    copies: list[CopyRow]
    peaks: list[RankPeak]
    recording: RecordingMemory | None


class SampleSeries(SlicePart):
    """Samples over time; `ranks` are those that share them. Times are ns after `origin_unix_ns` of the slice."""

    of: Annotated[str, Meta(description="device or host")]
    host_name: str
    ranks: list[int | None]
    name: str
    unit: str
    at_ns: list[int]
    values: list[float | None]


class SampleSlice(Slice):
    """Device and host samples."""

    origin_unix_ns: UnixNs | None
    series: list[SampleSeries]
    ranks_with_samples: int
    late: Annotated[list[int], Meta(description="ranks that the report calls late; their series come first")]


class ModuleSlice(Slice):
    """Time and memory by module; null where nothing recorded it."""

    title: str
    remarks: list[str]
    tree: ModuleTree | None


class WhatIfSlice(Slice):
    """The iteration under changes: what was predicted in advance, and what a line through several captures needs."""

    ranks: int
    samples: Annotated[float | None, Meta(description="of a rank's iteration; null: nobody says it")]
    iteration_ns: Annotated[list[float], Meta(description="of each iteration the mean over the ranks, ns")]
    memory_bytes: Annotated[float | None, Meta(description="the largest peak of any rank; null: not recorded")]
    predictions: Predictions | None
