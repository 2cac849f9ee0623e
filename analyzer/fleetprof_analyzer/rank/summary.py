"""The map step and the merge: one rank's trace and samples in, a small summary out; summaries in, one collection out.

Guarantees: `summarise` is pure and its result stays below about 100 KiB; `merge` is associative, commutative and
idempotent, so that summaries may be made anywhere and joined in any order. A summary is self-contained: the report is
made of summaries, never of traces.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.report import DeviceTime, HostSeries, Iteration, Problem, Rank, TimeBreakdown
from fleetprof_api.report.report_tables import Stages
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.causes.rank_view import view_rank
from fleetprof_analyzer.rank.causes.registry import find_known_causes
from fleetprof_analyzer.rank.communication.extraction import summarise_operations
from fleetprof_analyzer.rank.efficiency.rank_flops import measure_flops
from fleetprof_analyzer.rank.host.marks import HostMarks, read_marks
from fleetprof_analyzer.rank.host.memory_growth import measure_memory_growth
from fleetprof_analyzer.rank.host.track import read_track
from fleetprof_analyzer.rank.iterations import NO_PAUSES, Iterations, RecordingTerms, find_iterations
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
from fleetprof_analyzer.rank.measures.device_time import (
    add_idle,
    add_iteration_idle,
    explain_idle,
    list_devices,
    list_idle_places,
)
from fleetprof_analyzer.rank.measures.devices import DeviceWork, split_devices
from fleetprof_analyzer.rank.measures.energy import Energies, measure_energy
from fleetprof_analyzer.rank.measures.kernels.kernels import KernelGroup, measure_kernels
from fleetprof_analyzer.rank.measures.kernels.launch_calls import NO_CALLS, LaunchCalls, find_calls
from fleetprof_analyzer.rank.measures.kernels.launch_statistics import measure_launches
from fleetprof_analyzer.rank.measures.kernels.operator_launches import OperatorGroup, measure_operator_launches
from fleetprof_analyzer.rank.measures.memory_peak import measure_memory
from fleetprof_analyzer.rank.measures.series import device_series, host_series
from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.rank.measures.stages.stages import FoundStages, find_stages, sum_up
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.rank.modules.tree import measure_modules
from fleetprof_analyzer.rank.sections import Found, RankSection, Sections
from fleetprof_analyzer.rank.step_times import StepTimes, measure_step_times
from fleetprof_analyzer.rank.window.clocks import find_misfit
from fleetprof_analyzer.rank.window.pauses import find_pauses
from fleetprof_analyzer.rank.window.strays import leave_out_strays
from fleetprof_analyzer.rank.window.window import find_window, list_unrecorded
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Trace

_LOST: Final = "a fault of the analyzer lost them"
_ITERATIONS_KEPT: Final = 400


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
    modules: ModuleTree | None = None
    course: bytes = b""  # course.describe_course of the rank's iterations
    problems: list[Problem] = []


@dataclass(frozen=True, slots=True)
class TraceFindings:
    """The findings in a trace on the way to its summary, for those who draw it.

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
    trace = replace(trace, kernel_classes=terms.kernel_classes)
    sections = Sections(trace.source, problems)
    find = sections.find
    trace, marked = find(RankSection.MODULES, lambda: part_marked(trace)).otherwise((trace, None))
    if len(trace.rows) == 0:
        if marked is not None:
            problems.add(
                ProblemKind.NO_EVENTS, "it holds the iteration that marks modules alone, which is not measured"
            )
        return RankSummary(
            source=trace.source, rank_number=rank_number, problems=problems.entries(trace.source, rank_number)
        )
    trace = find(RankSection.WINDOW, lambda: leave_out_strays(trace, problems)).otherwise(trace)
    has_device = bool(trace.rows.on_device.any())
    calls = find(RankSection.CALLS, lambda: find_calls(trace))
    # The host of a rank without a device is taken as one.
    split = find(RankSection.DEVICES, lambda: split_devices(trace) if has_device else [find_host_work(trace)])
    misfit = find(RankSection.WINDOW, lambda: find_misfit(trace, split.value, calls.value)).or_none()
    pauses = find(RankSection.WINDOW, lambda: find_pauses(trace, samples, misfit)).otherwise(NO_PAUSES)
    found = find(RankSection.ITERATIONS, lambda: find_iterations(trace, samples, terms, problems, pauses)).otherwise(
        Iterations()
    )
    chosen = terms.choose(found.iterations)[:_ITERATIONS_KEPT]
    window = find(
        RankSection.WINDOW,
        lambda: find_window(trace, split.value, calls.value, found.iterations, pauses, misfit, problems),
    )
    every = find(RankSection.DEVICES, lambda: window.otherwise(split.value))
    works: Found[list[DeviceWork]] = every if has_device else Found(([],))
    # Where the clocks do not fit, nothing is explained by when it was launched.
    explaining = calls if misfit is None else Found((NO_CALLS,))
    idle = find(RankSection.IDLE, lambda: explain_idle(trace, works.value, explaining.value, chosen))
    devices = find(RankSection.TIME, lambda: list_devices(works.value, idle.otherwise([])))
    bounds = find(RankSection.TIME, lambda: bound_moments(chosen))
    before = find(RankSection.TIME, lambda: measure_before(every.value, bounds.value))
    timed = find(RankSection.TIME, lambda: measure_iterations(before.value, len(every.value), chosen))
    explained = find(
        RankSection.IDLE, lambda: add_iteration_idle(timed.value, [one.of_iterations for one in idle.value])
    )
    iterations = explained.otherwise(timed.otherwise(chosen))
    track = find(RankSection.CODE, lambda: read_track(samples) if trace.time_origin == "unix" else None).or_none()
    spans = [(one.start_ns, one.start_ns + one.duration_ns) for one in found.iterations]
    marks = find(RankSection.CODE, lambda: read_marks(trace, samples, spans)).otherwise(HostMarks())
    energies = find(RankSection.ENERGY, lambda: _measure_energies(trace, iterations, samples)).otherwise(
        Energies([None] * len(iterations))
    )
    stages = find(RankSection.STAGES, lambda: find_stages(trace, calls.value, iterations, found.marks, pauses))
    begin = trace.window_start_ns if trace.window_start_ns is not None else int(trace.rows.start_ns.min())
    rank = Rank(
        rank=rank_number,
        source=trace.source,
        kind="gpu" if has_device else "cpu",
        time_basis="device" if has_device else "host",
        time_ns=find(RankSection.TIME, lambda: _add_times(every.value, devices.value)).otherwise(TimeBreakdown()),
        idle_ns=find(RankSection.IDLE, lambda: add_idle([one.idle_ns for one in idle.value])).or_none()
        if has_device
        else None,
        devices=devices.otherwise([]),
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
        stages=find(RankSection.STAGES, lambda: sum_up(trace, calls.value, stages.value, track)).otherwise(
            Stages(reason=_LOST)
        ),
        launches=find(
            RankSection.LAUNCHES,
            lambda: measure_launches(works.value, calls.value, devices.value) if misfit is None else None,
        ).otherwise(None),
        copies=find(RankSection.COPIES, lambda: measure_copies(trace, works.value)).otherwise([]),
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
        device_series=find(
            RankSection.SAMPLES, lambda: [] if samples is None else device_series(samples.device)
        ).otherwise([]),
        unrecorded=find(RankSection.WINDOW, lambda: list_unrecorded(every.value)).otherwise([]),
        energy_from=energies.source,
        iteration_energy_mj=energies.mean_mj(),
        sample_energy_uj=energies.per_sample_uj(None if samples is None else samples.samples_per_iteration),
        world_size=(None if samples is None else samples.world_size) or trace.metadata.world_size,
        memory=find(RankSection.MEMORY, lambda: measure_memory(trace.memory)).otherwise([]),
        memory_growth=find(RankSection.MEMORY, lambda: measure_memory_growth(trace, samples, iterations)).or_none(),
        data_loading_ns=find(RankSection.LOADING, lambda: measure_data_loading(trace, marks.loading)).or_none(),
        idle_places=find(
            RankSection.IDLE_PLACES, lambda: list_idle_places(trace, works.value, calls.value, idle.value, track)
        ).otherwise([]),
        cores=find(
            RankSection.CORES, lambda: measure_core_use(samples, iterations) if trace.time_origin == "unix" else None
        ).or_none(),
        flops=find(RankSection.FLOPS, lambda: measure_flops(trace, iterations)).or_none(),
        causes=find(
            RankSection.CAUSES,
            lambda: find_known_causes(view_rank(trace, samples, iterations, stages.value, works.value)),
        ).otherwise([]),
    )
    course = find(
        RankSection.COURSE, lambda: describe_course(before.value, bounds.value, len(every.value), stages.value.labels)
    ).otherwise(b"")
    where = _where(stages.otherwise(FoundStages()))
    stages = Found(())  # a thread's rows, which nobody needs any more
    operations = find(
        RankSection.OPERATIONS,
        lambda: summarise_operations(
            trace, found, samples, track=track, marks=marks, rank_number=rank_number, problems=problems
        ),
    ).otherwise(b"")
    summary = RankSummary(
        source=trace.source,
        rank_number=rank_number,
        rank=rank,
        step_times=find(
            RankSection.STEP_TIMES,
            lambda: (
                None if samples is None else measure_step_times(rank, found.iterations, samples, marked is not None)
            ),
        ).or_none(),
        host=find(RankSection.SAMPLES, lambda: None if samples is None else _host(samples, rank_number)).or_none(),
        kernels=find(RankSection.KERNELS, lambda: measure_kernels(works.value, trace)).otherwise([]),
        communication=find(
            RankSection.COMMUNICATION,
            lambda: measure_communication(trace, works.value, None if has_device else every.value[0]),
        ).otherwise([]),
        operators=find(
            RankSection.OPERATORS, lambda: measure_operator_launches(trace, works.value, calls.value)
        ).otherwise([]),
        operations=operations,
        operations_bytes=len(operations),
        modules=find(RankSection.MODULES, lambda: measure_modules(marked, samples, trace, iterations)).or_none(),
        course=course,
    )
    if show is not None:
        show(TraceFindings(trace, every.otherwise([]), calls.otherwise(NO_CALLS), iterations, *where))
    return msgspec.structs.replace(
        summary,
        rank=msgspec.structs.replace(rank, lost=sections.lost),
        problems=problems.entries(trace.source, rank_number),
    )


def _add_times(works: Sequence[DeviceWork], devices: Sequence[DeviceTime]) -> TimeBreakdown:
    return add([device.time_ns for device in devices] or [measure_device(work) for work in works])


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
