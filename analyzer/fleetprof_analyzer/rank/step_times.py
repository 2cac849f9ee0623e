"""The agent's step times of one rank, with the window that was recorded: what a capture costs is told by them.

Guarantees: pure; at most `_STEPS_KEPT` steps, the last.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from fleetprof_api.report.report import Iteration, Rank
from fleetprof_api.samples import RankSamples, StepColumns

_STEPS_KEPT: Final = 2000


class StepTimes(msgspec.Struct, kw_only=True, frozen=True):
    """The agent's step times of one rank, and what surrounds the capture on its clock. Unix ns, 0 where unknown."""

    steps: StepColumns
    steps_per_iteration: int = 1
    armed_unix_ns: int = 0
    window_start_unix_ns: int = 0
    window_end_unix_ns: int = 0
    first_step: int | None = None  # of the recorded iterations
    last_step: int | None = None
    marked_iterations: int = 0  # behind them, recorded as well, and no measure of the job
    written_unix_ns: int = 0


def measure_step_times(
    rank: Rank, recorded: Sequence[Iteration], samples: RankSamples, has_marked: bool = False
) -> StepTimes | None:
    """The step times of a rank that has an agent, None of another; `recorded`: its iterations.

    `has_marked`: one more was recorded, in which modules were marked.
    """
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
        marked_iterations=int(has_marked),
        written_unix_ns=samples.written_unix_ns,
    )
