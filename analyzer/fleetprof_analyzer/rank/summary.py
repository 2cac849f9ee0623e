"""The map step and the merge: one rank's trace and samples in, a small summary out; summaries in, one collection out.

Guarantees: `summarise` is pure and its result stays below about 100 KB; `merge` is associative, commutative and
idempotent, so that summaries may be made anywhere and joined in any order. A summary is self-contained: the report is
made of summaries, never of traces.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.report import HostSeries, Iteration, Problem, Rank
from fleetprof_api.samples import RankSamples, StepColumns

from fleetprof_analyzer.rank.communication.extraction import summarise_operations
from fleetprof_analyzer.rank.host.marks import read_marks
from fleetprof_analyzer.rank.host.track import read_track
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.rank.measures.breakdown import (
    add,
    find_host_work,
    measure_before,
    measure_device,
    measure_iterations,
)
from fleetprof_analyzer.rank.measures.communication_table import CommunicationGroup, measure_communication
from fleetprof_analyzer.rank.measures.copies import measure_copies
from fleetprof_analyzer.rank.measures.core_use import measure_core_use
from fleetprof_analyzer.rank.measures.course import bound_moments, describe_course
from fleetprof_analyzer.rank.measures.data_loading import measure_data_loading
from fleetprof_analyzer.rank.measures.device_time import add_idle, add_iteration_idle, measure_device_time
from fleetprof_analyzer.rank.measures.devices import DeviceWork, split_devices
from fleetprof_analyzer.rank.measures.energy import Energies, measure_energy
from fleetprof_analyzer.rank.measures.host_activity import read_host
from fleetprof_analyzer.rank.measures.idle.places import find_idle_places
from fleetprof_analyzer.rank.measures.kernels.kernels import KernelGroup, measure_kernels
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls, find_calls
from fleetprof_analyzer.rank.measures.kernels.launch_statistics import measure_launches
from fleetprof_analyzer.rank.measures.kernels.operator_launches import OperatorGroup, measure_operator_launches
from fleetprof_analyzer.rank.measures.memory_peak import measure_memory
from fleetprof_analyzer.rank.measures.series import device_series, host_series
from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.rank.measures.stages.stages import FoundStages, find_stages, sum_up
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace

_STEPS_KEPT: Final = 2000
_ITERATIONS_KEPT: Final = 400


class StepTimes(msgspec.Struct, kw_only=True, frozen=True):
    """The agent's step times of one rank, and what surrounds the capture on its clock. Unix ns, 0 where unknown."""

    steps: StepColumns
    steps_per_iteration: int = 1
    armed_unix_ns: int = 0
    window_start_unix_ns: int = 0
    window_end_unix_ns: int = 0
    first_step: int | None = None  # of the recorded iterations
    last_step: int | None = None
    written_unix_ns: int = 0


class RankSummary(msgspec.Struct, kw_only=True, frozen=True):
    """All that the report needs of one trace. `rank` is None where the file holds nothing to report but problems."""

    source: str
    rank_number: int | None
    rank: Rank | None = None
    step_times: StepTimes | None = None
    host: HostSeries | None = None
    kernels: list[KernelGroup] = []
    communication: list[CommunicationGroup] = []
    operators: list[OperatorGroup] = []
    operations: bytes = b""  # operations.encode; empty where there is no communication, or where it lies beside this
    operations_bytes: int = 0  # their length, also where they lie beside this
    course: bytes = b""  # course.describe_course of the rank's iterations
    problems: list[Problem] = []


@dataclass(frozen=True, slots=True)
class TraceFindings:
    """What was found in a trace on the way to its summary, for those who draw it.

    `works` are the rank's devices, or its host where it has none. `labels` are the pieces of each of the iterations at
    `bounds`, [start, end); `main_place` is the thread that trains, -1 where none is found, `helpers` run its autograd.
    """

    trace: Trace
    works: Sequence[DeviceWork]
    calls: LaunchCalls
    iterations: Sequence[Iteration]
    bounds: Sequence[tuple[int, int]]
    labels: Sequence[Sequence[Label]]
    main_place: int
    helpers: Sequence[int]


def summarise(
    trace: Trace,
    samples: RankSamples | None,
    *,
    rank_number: int | None,
    terms: RecordingTerms,
    problems: Problems,
    show: Callable[[TraceFindings], None] | None = None,
) -> RankSummary:
    """One rank's summary. `problems` holds what reading the trace has met, and receives what is met here.

    `show` is called last, where the trace holds something.
    """
    if len(trace.rows) == 0:
        return RankSummary(
            source=trace.source, rank_number=rank_number, problems=problems.entries(trace.source, rank_number)
        )
    trace = replace(trace, kernel_classes=terms.kernel_classes)
    calls = find_calls(trace)
    works = split_devices(trace)
    host = read_host(trace) if works else None
    found = find_iterations(trace, samples, terms, problems)
    chosen = terms.choose(found.iterations)[:_ITERATIONS_KEPT]
    measured = [measure_device_time(trace, work, calls, host, chosen) for work in works if host is not None]
    devices = [device for device, _, _ in measured]
    del host
    begin = trace.window_start_ns if trace.window_start_ns is not None else int(trace.rows.start_ns.min())
    on_host = None if works else find_host_work(trace)
    bounds = bound_moments(chosen)
    before = measure_before(works if on_host is None else [on_host], bounds)
    iterations = measure_iterations(before, max(1, len(works)), chosen)
    iterations = add_iteration_idle(iterations, [idle_ns for _, idle_ns, _ in measured])
    track = read_track(samples) if trace.time_origin == "unix" else None
    marks = read_marks(trace, samples, [(one.start_ns, one.start_ns + one.duration_ns) for one in found.iterations])
    energies = _measure_energies(trace, iterations, samples)
    stages = find_stages(trace, calls, iterations, found.marks)
    rank = Rank(
        rank=rank_number,
        source=trace.source,
        kind="gpu" if devices else "cpu",
        time_basis="device" if devices else "host",
        time_ns=add([device.time_ns for device in devices]) if on_host is None else measure_device(on_host),
        idle_ns=add_idle([device.idle_ns for device in devices if device.idle_ns is not None]) if devices else None,
        devices=devices,
        start_ns=iterations[0].start_ns if iterations else begin,
        time_origin=trace.time_origin,
        iterations=[
            msgspec.structs.replace(iteration, energy_mj=energy)
            for iteration, energy in zip(iterations, energies.millijoules, strict=True)
        ],
        iterations_from=found.marks,
        index_from=found.index_from,
        steps_per_iteration=found.steps_per_iteration,
        first_step=found.first_step,
        stages=sum_up(trace, calls, stages, track),
        launches=measure_launches(works, calls, devices),
        copies=measure_copies(trace, works),
        truncated=trace.truncated,
        recorded_permille=trace.recorded_permille,
        event_count=trace.event_count,
        trace_bytes=trace.decoded_bytes,
        trace_id=trace.metadata.trace_id,
        host_name=(samples.host_name if samples is not None else "") or trace.metadata.host_name,
        node_name="" if samples is None else samples.node_name,
        samples_per_iteration=None if samples is None else samples.samples_per_iteration,
        torch_version="" if samples is None else samples.torch_version,
        device_name=(samples.device_name if samples is not None else "") or trace.metadata.device_name,
        device_series=[] if samples is None else device_series(samples.device),
        energy_from=energies.source,
        iteration_energy_mj=energies.mean_mj(),
        sample_energy_uj=energies.per_sample_uj(None if samples is None else samples.samples_per_iteration),
        world_size=(None if samples is None else samples.world_size) or trace.metadata.world_size,
        memory=measure_memory(trace.memory),
        data_loading_ns=measure_data_loading(trace, marks.loading),
        idle_places=[
            place
            for work, (_, _, longest) in zip(works, measured, strict=False)
            for place in find_idle_places(trace, work, calls, longest, track)
        ],
        cores=measure_core_use(samples, iterations) if trace.time_origin == "unix" else None,
    )
    course = describe_course(before, bounds, max(1, len(works)), stages.labels)
    where = _where(stages)
    del stages  # a thread's rows, which nobody needs any more
    operations = summarise_operations(
        trace, found, samples, track=track, marks=marks, rank_number=rank_number, problems=problems
    )
    summary = RankSummary(
        source=trace.source,
        rank_number=rank_number,
        rank=rank,
        step_times=None if samples is None else _step_times(rank, found.iterations, samples),
        host=None if samples is None else _host(samples, rank_number),
        kernels=measure_kernels(works, trace),
        communication=measure_communication(trace, works, on_host),
        operators=measure_operator_launches(trace, works, calls),
        operations=operations,
        operations_bytes=len(operations),
        course=course,
        problems=problems.entries(trace.source, rank_number),
    )
    if show is not None:
        show(TraceFindings(trace, works if on_host is None else [on_host], calls, iterations, *where))
    return summary


def _where(
    found: FoundStages,
) -> tuple[Sequence[tuple[int, int]], Sequence[Sequence[Label]], int, Sequence[int]]:
    """Bounds, labels, main thread and helpers."""
    if found.thread is None:
        return found.bounds, found.labels, -1, ()
    return found.bounds, found.labels, found.thread.place, np.flatnonzero(found.thread.helps).tolist()


def merge(parts: Iterable[Sequence[RankSummary]]) -> list[RankSummary]:
    """Joins collections of summaries into one, sorted by rank and source; equal summaries become one."""
    distinct = {msgspec.json.encode(summary): summary for part in parts for summary in part}
    return [summary for _, summary in sorted(distinct.items(), key=lambda item: (*_order(item[1]), item[0]))]


def _order(summary: RankSummary) -> tuple[bool, int, str]:
    number = summary.rank_number
    return number is None, -1 if number is None else number, summary.source


def _step_times(rank: Rank, recorded: Sequence[Iteration], samples: RankSamples) -> StepTimes | None:
    # Of all that was recorded, also of what the report leaves out: it was traced, and cost what tracing costs.
    steps = samples.steps
    if not samples.agent or not steps.step or len(steps.step) != len(steps.end_unix_ns):
        return None
    first, last = samples.started_unix_ns, 0
    if rank.time_origin == "unix":
        first = rank.start_ns
        last = max((i.start_ns + i.duration_ns for i in recorded), default=0)
    numbered = [iteration.step for iteration in recorded if iteration.step is not None]
    return StepTimes(
        steps=StepColumns(step=steps.step[-_STEPS_KEPT:], end_unix_ns=steps.end_unix_ns[-_STEPS_KEPT:]),
        steps_per_iteration=max(1, samples.steps_per_iteration),
        armed_unix_ns=samples.armed_unix_ns,
        window_start_unix_ns=first,
        window_end_unix_ns=last,
        first_step=min(numbered, default=None),
        last_step=max(numbered) + rank.steps_per_iteration - 1 if numbered else None,
        written_unix_ns=samples.written_unix_ns,
    )


def _measure_energies(trace: Trace, iterations: Sequence[Iteration], samples: RankSamples | None) -> Energies:
    if samples is None or trace.time_origin != "unix":
        return Energies([None] * len(iterations))
    start_ns = np.array([iteration.start_ns for iteration in iterations], np.int64)
    length_ns = np.array([iteration.duration_ns for iteration in iterations], np.int64)
    return measure_energy(samples.device, start_ns, start_ns + length_ns)


def _host(samples: RankSamples, rank_number: int | None) -> HostSeries | None:
    series = host_series(samples.host)
    if not series:
        return None
    return HostSeries(host_name=samples.host_name, ranks=[] if rank_number is None else [rank_number], series=series)
