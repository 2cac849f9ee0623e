"""The analysis' findings as marks on tracks of its own: iterations, stages, idle gaps with their causes.

Guarantees: pure; times are those of the rank's own clock; marks of one track never overlap; at most `MOST_MARKS` of the
longest per track.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.host_activity import read_host
from fleetprof_analyzer.rank.measures.idle.idle import FIELDS, GapPart, explain_gaps
from fleetprof_analyzer.rank.measures.kernels.launch_calls import NO_CALLS, LaunchCalls
from fleetprof_analyzer.rank.measures.stages.gaps import fill
from fleetprof_analyzer.rank.measures.stages.labels import Label, find_labels
from fleetprof_analyzer.rank.measures.stages.main_thread import find_main_thread
from fleetprof_analyzer.rank.measures.stages.stages import bound_by_passes, find_passes
from fleetprof_analyzer.rank.window.clocks import find_misfit
from fleetprof_analyzer.rank.window.pauses import find_pauses
from fleetprof_analyzer.rank.window.window import find_window
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace

MOST_MARKS: Final = 2000
LEAST_NS: Final = 10_000  # shorter idle gaps and waits are drawn by nobody

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark; `args` is shown when it is selected."""

    track: str
    name: str
    start_ns: int
    duration_ns: int
    args: dict[str, str | int | float] = field(default_factory=dict)


def mark_rank(trace: Trace, entry: Rank, calls: LaunchCalls, span: Span) -> list[Mark]:
    """The marks of one rank that lie in [start, end) or reach into it."""
    return [*_iterations(entry, span), *_stages(trace, entry, calls, span), *_idle(trace, entry, calls, span)]


def keep_longest(marks: Sequence[Mark]) -> list[Mark]:
    """At most `MOST_MARKS`, in order of time."""
    longest = sorted(marks, key=lambda mark: -mark.duration_ns)[:MOST_MARKS]
    return sorted(longest, key=lambda mark: mark.start_ns)


def touches(start_ns: int, end_ns: int, span: Span) -> bool:
    """Tells whether [start, end) and the span have something in common."""
    return start_ns < span[1] and end_ns > span[0]


def _iterations(entry: Rank, span: Span) -> Iterable[Mark]:
    for one in entry.iterations:
        if not touches(one.start_ns, one.start_ns + one.duration_ns, span):
            continue
        args: dict[str, str | int | float] = {"numbered_by": entry.index_from}
        if one.step is not None:
            args["first_step"] = one.step
        if one.complete is False:
            args["complete"] = "false: cut by the window of the capture"
        if one.time_ns is not None:
            args |= {f"{name}_ns": getattr(one.time_ns, name) for name in one.time_ns.__struct_fields__}
        yield Mark("iterations", f"iteration {one.index}", one.start_ns, one.duration_ns, args)


def _stages(trace: Trace, entry: Rank, calls: LaunchCalls, span: Span) -> Iterable[Mark]:
    thread = find_main_thread(trace, calls)
    if thread is None:
        return
    passes = find_passes(thread)
    bounds = [(i.start_ns, i.start_ns + i.duration_ns) for i in entry.iterations] or bound_by_passes(thread, passes)
    for start, end in bounds:
        if not touches(start, end, span):
            continue
        near = [one for one in passes if touches(*one, (start, end))]
        found = find_labels(trace, thread, near, start, end)
        pieces: list[Label] = []
        for left, right, stage in fill(thread, found, start, end):
            joined = pieces.pop()[0] if pieces and pieces[-1][1:] == (left, stage) else left
            pieces.append((joined, right, stage))
        for left, right, stage in pieces:
            args: dict[str, str | int | float] = {}
            if stage in found.inferred:
                args["inferred"] = "nothing marks this stage: filled in from its neighbours"
            yield Mark("stages", stage, left, right - left, args)


def _idle(trace: Trace, entry: Rank, calls: LaunchCalls, span: Span) -> Iterable[Mark]:
    works = split_devices(trace)
    if not works:
        return
    misfit = find_misfit(trace, works, calls)
    pauses = find_pauses(trace, None, misfit)
    host, explaining = read_host(trace), calls if misfit is None else NO_CALLS
    for work in find_window(trace, works, calls, entry.iterations, pauses, misfit, Problems()):
        gaps, parts = explain_gaps(trace, work, explaining, host)
        length = gaps.end_ns - gaps.begin_ns
        near = np.flatnonzero((gaps.begin_ns < span[1]) & (gaps.end_ns > span[0]) & (length >= LEAST_NS))
        longest = near[np.argsort(-length[near], kind="stable")[:MOST_MARKS]]
        for at in np.sort(longest).tolist():
            causes: dict[str, int] = {}
            for part, value in zip(GapPart, parts[at].tolist(), strict=True):
                if value:
                    cause = FIELDS[part][0]
                    causes[cause] = causes.get(cause, 0) + value
            main = max(causes, key=lambda name: causes[name])
            args: dict[str, str | int | float] = {f"{cause}_ns": value for cause, value in causes.items()}
            yield Mark(f"idle GPU {work.device}", f"idle: {main}", int(gaps.begin_ns[at]), int(length[at]), args)
