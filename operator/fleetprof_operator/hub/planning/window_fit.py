"""The length of a window by which no rank records more than it has room for: the same iterations on every rank.

A window of iterations that also has a time is as many of them as that time holds by the ranks' pace, or the time where
it holds none. A window is bounded by the memory that its ranks may still take, all ranks of a sidecar together (they
share a pod's, or a machine's, memory), by the events of one rank (recording.MOST_EVENTS) and by limits.maxTraceBytes.
Each bound follows from what one iteration takes (docs/limits.md#memory); if that is unknown, there is no bound, and the
agents watch.

Guarantees: pure; a window is never made longer; one iteration is the least, and where even that does not fit into
memory the request is refused with the figures. More than one leave an eighth of the memory alone: the figure is seconds
old when a recording begins, and a job's memory moves meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.quantities import size
from fleetprof_api.report.recording import FLOOR_BYTES, MOST_EVENTS, need_of
from fleetprof_api.request import Spec, Window

from fleetprof_operator.hub.planning.rank_targets import RankTarget

NO_MEMORY: Final = "NoMemory"
_SLACK_SHARE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The window as it will be ordered; `note`: why it is shorter than asked; `refusal`: why there is none."""

    window: Window
    note: str = ""
    refusal: str = ""


def fit_window(spec: Spec, targets: Sequence[RankTarget], estimate: RecordingEstimate | None) -> Fit:
    """The longest window within what was asked for that every rank has room for."""
    iteration_ns = max((t.process.step.iteration_ns for t in targets), default=0)
    window, timely = _end_at_time(spec.recorded, iteration_ns)
    iterations = _count_iterations(window, iteration_ns)
    if estimate is None or not iterations:
        return Fit(window=window, note=timely)
    most, why = _find_most(spec, targets, estimate, iterations)
    if most >= iterations:
        return Fit(window=window, note=timely)
    if most < 1:
        return Fit(
            window=window,
            refusal=f"{why}; capture fewer ranks or less of collect (stacks and shapes most of all), or raise the "
            "job's memory limit",
        )
    shorter = "1 iteration" if most == 1 else f"{most} iterations"
    note = f"the window is {shorter} instead of {iterations}: {why}"
    if window.iterations is not None:
        warmup = None if window.warmup_iterations is None else min(window.warmup_iterations, 100)
        return Fit(window=Window(iterations=most, warmup_iterations=warmup), note=note)
    return Fit(window=Window(duration_millis=max(10, most * iteration_ns // 10**6)), note=note)


def _end_at_time(window: Window, iteration_ns: int) -> tuple[Window, str]:
    """The iterations, or the time, that end first of a window that has both; what is shorter than asked is said."""
    if window.iterations is None or window.duration_millis is None or iteration_ns <= 0:
        return window, ""
    within = window.duration_millis * 10**6 // iteration_ns
    if not within:
        wanted = "1 iteration" if window.iterations == 1 else f"{window.iterations} iterations"
        note = f"the window is {window.duration_millis} ms instead of {wanted}: one takes {iteration_ns / 10**9:.3g} s"
        return Window(duration_millis=window.duration_millis), note
    fitting = Window(iterations=min(within, window.iterations), warmup_iterations=window.warmup_iterations)
    if within >= window.iterations:
        return fitting, ""
    shorter = "1 iteration" if within == 1 else f"{within} iterations"
    return fitting, (
        f"the window is {shorter} instead of {window.iterations}: one takes {iteration_ns / 10**9:.3g} s, and "
        f"window.durationMillis is {window.duration_millis}"
    )


def _count_iterations(window: Window, iteration_ns: int) -> int:
    """The most iterations that the window has; 0 where nobody knows."""
    if window.iterations is not None:
        return window.iterations
    assert window.duration_millis is not None
    return window.duration_millis * 10**6 // iteration_ns + 1 if iteration_ns > 0 else 0


def _find_most(
    spec: Spec, targets: Sequence[RankTarget], estimate: RecordingEstimate, iterations: int
) -> tuple[int, str]:
    """The most iterations that fit, at most `iterations`, and a sentence about what binds them."""
    one, two = (need_of(estimate, count, spec.options) for count in (1, 2))
    most, why = iterations, ""
    if one.events and most * one.events > MOST_EVENTS:
        most = max(1, MOST_EVENTS // one.events)
        why = f"one has {one.events:,} events, and a rank records at most {MOST_EVENTS:,}"
    limit = spec.limits.max_trace_bytes
    if limit and one.trace_bytes and most * one.trace_bytes > limit:
        most = max(1, limit // one.trace_bytes)
        why = f"the trace of one has {size(one.trace_bytes)}, and limits.maxTraceBytes is {size(limit)}"
    each, fixed = two.memory_bytes - one.memory_bytes, 2 * one.memory_bytes - two.memory_bytes
    for group in _group(targets):
        left = min((t.process.memory_headroom_bytes for t in group if t.process.memory_headroom_bytes), default=0)
        fits = _count_fitting(left, fixed * len(group), each * len(group)) if left and each else most
        if fits < most:
            most = max(0, fits)
            beside = "" if len(group) == 1 else f" with the {len(group) - 1} ranks beside it"
            why = (
                f"rank {group[0].rank}{beside} may take {size(left)} of memory more, and recording takes "
                f"{size(fixed + each)} for one iteration of a rank and {size(each)} for each further one"
            )
    return most, why


def _count_fitting(left: int, fixed: int, each: int) -> int:
    """The number of iterations that fit into `left` bytes."""
    wary = (left - left // _SLACK_SHARE - FLOOR_BYTES - fixed) // each
    return wary if wary >= 1 else min(1, (left - FLOOR_BYTES - fixed) // each)


def _group(targets: Sequence[RankTarget]) -> list[list[RankTarget]]:
    groups: dict[str, list[RankTarget]] = {}
    for target in targets:
        groups.setdefault(target.sidecar_id, []).append(target)
    return list(groups.values())
