"""Finds the training iterations in a trace, and their numbers.

Boundaries: the starts of the range that the user named, else the ends of `Optimizer.step#` annotations (p of them per
iteration), or `ProfilerStep#n` ranges; which one was used is said. Numbers: with the agent, from its step times (a
step's end lies inside its annotation, because the agent's hook runs there); with ProfilerStep, its n; else counted from
0. Definitions: docs/measures.md#iterations.

Guarantees: pure; never guesses a number without saying so; an iteration that the window cut is not listed.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from fleetprof_api.kernel_class import KernelClass
from fleetprof_api.report.report import Iteration
from fleetprof_api.report.report_tables import IterationMarks
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.trace.intervals import Union
from fleetprof_analyzer.trace.naming import matcher
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows, Trace

OPTIMIZER_STEP: Final = re.compile(r"^Optimizer\.step#")
_PROFILER_STEP: Final = re.compile(r"^ProfilerStep\s*#\s*(\d{1,18})$")
_MARK_TOLERANCE_NS: Final = 1_000_000
# A recording that begins this much after the end of the step before has missed the start of its first iteration.
_LATE_START_NS: Final = 2_000_000
_LATE_START_DIVISOR: Final = 20
_FRAGMENT_DIVISOR: Final = 10
NO_PAUSES: Final[Union] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class RecordingTerms:
    """The begin of the recording as ordered: "step" with its first step, "time" (anywhere in an iteration), not known.

    `iterations` is how many were asked for, None where a length of time was, or nothing is known. `kernel_classes` are
    the user's own, before the table of `classes`; `iteration_range` is the name of the range that bounds an iteration,
    where the user gave one.
    """

    start_mode: str = ""
    first_step: int | None = None
    iterations: int | None = None
    kernel_classes: Sequence[KernelClass] = ()
    iteration_range: str = ""

    def choose(self, found: list[Iteration]) -> list[Iteration]:
        """The iterations that were asked for, of those that were recorded.

        A window by time is made longer than what was asked for: it cannot begin where an iteration does.
        """
        return found[: self.iterations] if self.start_mode == "time" else found


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations found; `first_step` is the first complete optimizer step, in KinetoStepTracker's count."""

    iterations: list[Iteration] = field(default_factory=list)
    marks: IterationMarks = "none"
    index_from: Literal["agent", "profiler_step", "position", "none"] = "none"
    steps_per_iteration: int = 1
    first_step: int | None = None


def find_iterations(
    trace: Trace,
    samples: RankSamples | None,
    terms: RecordingTerms,
    problems: Problems,
    pauses: Union = NO_PAUSES,
) -> Iterations:
    """The complete iterations of a trace, in time order; none reaches over one of the recorder's `pauses`."""
    if terms.iteration_range:
        return _named_iterations(trace, terms.iteration_range, pauses)
    steps = _optimizer_marks(trace)
    number = None
    if samples is not None and steps is not None and trace.time_origin == "unix":
        number = _step_of_first_mark(steps.rows, samples, problems)
    profiler = _profiler_iterations(trace, problems)
    if steps is not None and number is None:
        steps = _optimizer_marks(trace, outermost=True)
    # With the agent's numbers the optimizer marks are exact; without them the profiler's own ranges are.
    if steps is not None and (number is not None or not profiler):
        return _optimizer_iterations(trace, steps, samples, number, terms, pauses)
    if profiler:
        return Iterations(profiler, "profiler_step", "profiler_step")
    return Iterations()


@dataclass(frozen=True, slots=True)
class _Marks:
    """Optimizer steps of one thread, by end."""

    rows: Rows
    thread_start_ns: int
    per_iteration: int


def _named(trace: Trace, pattern: re.Pattern[str]) -> Rows:
    """Host annotations whose name matches, by end."""
    wanted = np.fromiter(map(matcher(pattern), trace.names), np.bool_, len(trace.names))
    if not wanted.any():
        return trace.rows.select(np.zeros(len(trace.rows), np.bool_))
    host = (trace.rows.category == Category.ANNOTATION) | (trace.rows.category == Category.OPERATOR)
    rows = trace.rows.select(host & wanted[trace.rows.name])
    return rows.take(np.argsort(rows.end_ns, kind="stable"))


def find_marks(trace: Trace) -> Rows:
    """The rows that bound iterations: the profiler's own ranges, else the optimizer's steps; none without either."""
    for pattern in (_PROFILER_STEP, OPTIMIZER_STEP):
        rows = _named(trace, pattern)
        if len(rows):
            return _of_busiest_thread(rows)
    return rows


def find_profiler_ranges(trace: Trace) -> Rows:
    """The profiler's own ranges of steps."""
    rows = _named(trace, _PROFILER_STEP)
    return _of_busiest_thread(rows) if len(rows) else rows


def _of_busiest_thread(rows: Rows) -> Rows:
    places, counts = np.unique(rows.place, return_counts=True)
    return rows.select(rows.place == places[counts.argmax()])


def _optimizer_marks(trace: Trace, *, outermost: bool = False) -> _Marks | None:
    """The steps; `outermost`: without those of the optimizers that another one steps (the agent counts each)."""
    rows = _named(trace, OPTIMIZER_STEP)
    if len(rows) == 0:
        return None
    rows = _of_busiest_thread(rows)
    if outermost:  # what ends later and begins no later is around it
        later = np.minimum.accumulate(rows.start_ns[::-1])[::-1]
        rows = rows.select(np.append(later[1:] > rows.start_ns[:-1], True))
    ranges = (trace.rows.category == Category.OPERATOR) | (trace.rows.category == Category.ANNOTATION)
    on_thread = (trace.rows.place == rows.place[0]) & ranges
    first = int(trace.rows.start_ns[on_thread].min())
    return _Marks(rows, first, _period(rows.name.tolist()))


def _period(names: list[int]) -> int:
    """Optimizer steps per iteration as the names show it: A B A B has two."""
    period = len(set(names))
    repeats = all(name == names[index % period] for index, name in enumerate(names))
    return period if repeats and len(names) >= 2 * period else 1


def _step_of_first_mark(marks: Rows, samples: RankSamples, problems: Problems) -> int | None:
    """The step number of the first mark by the agent's times, when the marks agree on it."""
    ends = np.array(samples.steps.end_unix_ns, np.int64)
    numbers = np.array(samples.steps.step, np.int64)
    if len(ends) == 0 or len(ends) != len(numbers):
        return None
    order = np.argsort(ends, kind="stable")
    ends, numbers = ends[order], numbers[order]
    votes: Counter[int] = Counter()
    after = np.searchsorted(ends, marks.start_ns)
    for position, following in enumerate(after.tolist()):
        if following == len(ends):
            continue
        inside = ends[following] <= marks.end_ns[position] + _MARK_TOLERANCE_NS
        # Kineto stops inside the last step, before the agent's hook: that mark is cut short, and the next time is its
        # own as long as the time before belongs to the step before.
        cut = position == len(marks) - 1 and following > 0 and numbers[following] == numbers[following - 1] + 1
        if inside or cut:
            votes[int(numbers[following]) - position] += 1
    if not votes:
        problems.add(ProblemKind.STEPS_DO_NOT_MATCH, "no optimizer step of the trace is among the agent's step times")
        return None
    (number, agreeing), *_ = votes.most_common(1)
    if 2 * agreeing < len(marks) or 2 * agreeing <= votes.total():
        problems.add(
            ProblemKind.STEPS_DO_NOT_MATCH,
            f"only {agreeing} of {len(marks)} optimizer steps of the trace agree with the agent's step times",
        )
        return None
    return number


def _optimizer_iterations(
    trace: Trace,
    marks: _Marks,
    samples: RankSamples | None,
    number: int | None,
    terms: RecordingTerms,
    pauses: Union,
) -> Iterations:
    per_iteration = marks.per_iteration
    if samples is not None and number is not None:
        per_iteration = max(1, samples.steps_per_iteration)
    # Steps count from 1, iterations hold steps kp+1 to kp+p: what stands before the first multiple is another's end.
    skip = 0 if number is None else -(number - 1) % per_iteration
    ends = marks.rows.end_ns
    iterations: list[Iteration] = []
    for first in range(skip, len(ends) - per_iteration + 1, per_iteration):
        begin = int(ends[first - 1]) if first else _recording_start(trace, marks)
        end = int(ends[first + per_iteration - 1])
        resumed, end = behind_pauses(begin, end, pauses)
        paused, begin = resumed > begin, resumed
        duration = end - begin
        step = None if number is None else number + first
        complete = True if first else _began_in_time(begin, duration, step, samples, terms)
        if paused:
            complete = None  # where it began is not known
        if complete is False:
            continue
        iterations.append(
            Iteration(
                index=len(iterations) if step is None else (step - 1) // per_iteration + 1,
                start_ns=begin,
                duration_ns=duration,
                step=step,
                complete=complete,
            )
        )
    return Iterations(
        iterations,
        "optimizer_step",
        "position" if number is None else "agent",
        per_iteration,
        iterations[0].step if iterations else None,
    )


def behind_pauses(start_ns: int, end_ns: int, pauses: Union) -> tuple[int, int]:
    """[start, end) from the last of the pauses in it on."""
    resumed = pauses[1][(pauses[0] >= start_ns) & (pauses[1] <= end_ns)]
    return (int(resumed[-1]) if len(resumed) else start_ns), end_ns


def _recording_start(trace: Trace, marks: _Marks) -> int:
    """The begin of the first iteration: where Kineto began to record, else the first row of the thread."""
    recorded = trace.window_start_ns
    return marks.thread_start_ns if recorded is None or recorded > marks.thread_start_ns else recorded


def _began_in_time(
    begin: int, duration: int, step: int | None, samples: RankSamples | None, terms: RecordingTerms
) -> bool | None:
    """Tells whether the recording holds the first iteration whole; None when nothing tells."""
    if step is None or samples is None:
        return False if terms.start_mode == "time" else None
    if terms.start_mode == "step" and step == terms.first_step:
        return True
    before = dict(zip(samples.steps.step, samples.steps.end_unix_ns, strict=False)).get(step - 1)
    if before is None:
        return None
    return begin - before <= max(_LATE_START_NS, duration // _LATE_START_DIVISOR)


def _named_iterations(trace: Trace, name: str, pauses: Union) -> Iterations:
    """From the start of each range of this name to the next one's: what lies between two belongs to the first."""
    wanted = np.array([one == name for one in trace.names], np.bool_)
    ranges = (trace.rows.category == Category.ANNOTATION) | (trace.rows.category == Category.OPERATOR)
    rows = trace.rows.select(ranges & wanted[trace.rows.name])
    if len(rows) == 0:
        return Iterations()
    starts = np.sort(_of_busiest_thread(rows).start_ns).tolist()
    iterations: list[Iteration] = []
    for begin, end in pairwise(starts):
        resumed, end = behind_pauses(begin, end, pauses)
        complete = None if resumed > begin else True
        iterations.append(
            Iteration(index=len(iterations), start_ns=resumed, duration_ns=end - resumed, complete=complete)
        )
    return Iterations(iterations, "named_range", "position")


def _profiler_iterations(trace: Trace, problems: Problems) -> list[Iteration]:
    rows = _named(trace, _PROFILER_STEP)
    if len(rows) == 0:
        return []
    rows = _of_busiest_thread(rows)
    by_index: dict[int, Iteration] = {}
    again = 0
    for name, start, duration in zip(rows.name, rows.start_ns, rows.duration_ns, strict=True):
        match = _PROFILER_STEP.search(trace.names[name])
        assert match is not None
        index = int(match[1])
        # Old traces have a range among the operators as well.
        again += index in by_index and by_index[index].start_ns + by_index[index].duration_ns <= int(start)
        by_index[index] = Iteration(index=index, start_ns=int(start), duration_ns=int(duration))
    if again:
        example = f"{again} ranges of steps have the number of an earlier one: of each number the last is an iteration"
        problems.add(ProblemKind.SECOND_RECORDING, example)
    iterations = sorted(by_index.values(), key=lambda iteration: iteration.start_ns)
    return _without_fragment(iterations, problems)


def _without_fragment(iterations: list[Iteration], problems: Problems) -> list[Iteration]:
    """The profiler's last range ends where it was stopped: a sliver of an iteration, not one."""
    if len(iterations) < 2:
        return iterations
    *others, last = iterations
    typical: Int64s = np.array([iteration.duration_ns for iteration in others], np.int64)
    if last.duration_ns * _FRAGMENT_DIVISOR >= int(np.median(typical)):
        return iterations
    problems.add(
        ProblemKind.ITERATION_FRAGMENT, f"ProfilerStep#{last.index} was cut after {last.duration_ns:,} ns; left out"
    )
    return others
