"""The window that every measure of a rank looks at: what was recorded (docs/measures.md#recorded-window).

Guarantees: pure; what was not recorded is no part of any measure but its own, and is said with its reason.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from fleetprof_api.report.report import Iteration, UnrecordedReason, UnrecordedTime

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.rank.window.clocks import Misfit
from fleetprof_analyzer.rank.window.missing_work import (
    add_iterations_without_work,
    add_missing_work,
    find_launches_without_work,
)
from fleetprof_analyzer.rank.window.unrecorded import Lost
from fleetprof_analyzer.trace.intervals import Union, length
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Category, Trace

_REASONS: Final[dict[Lost, UnrecordedReason]] = {
    Lost.PAUSED: "paused",
    Lost.WORK_MISSING: "work_missing",
    Lost.NO_DEVICE_ROWS: "no_device_rows",
}

_HOST: Final = (Category.OPERATOR, Category.RUNTIME)


def find_window(
    trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls, iterations: Sequence[Iteration], pauses: Union,
    misfit: Misfit | None, problems: Problems,
) -> list[DeviceWork]:  # fmt: skip
    """A rank's devices, or its host, with what was not recorded of them, which `problems` receives as well.

    `misfit` shows that the clocks of host and devices do not fit.
    """
    if len(pauses[0]):
        example = f"nothing of host and devices was recorded for {length(pauses) / 1e9:,.3f} s in all"
        problems.add(ProblemKind.RECORDING_PAUSED, example, len(pauses[0]))
    paused = [replace(one, unrecorded=one.unrecorded.add(*pauses, Lost.PAUSED, one.busy())) for one in works]
    if not trace.rows.on_device.any():
        return paused
    if not np.isin(trace.rows.category, _HOST).any():
        problems.note(ProblemKind.HOST_NOT_RECORDED)
    missing, launches = find_launches_without_work(trace, works, calls)
    if missing.any():
        problems.add(
            ProblemKind.WORK_MISSING,
            f"{int(missing.sum()):,} of {launches:,} launches have no work in the trace",
            int(missing.sum()),
        )
    if misfit is not None:
        problems.add(ProblemKind.CLOCKS_DIFFER, f"{misfit.say()}: no cause of idle time can be told", misfit.off)
    else:
        paused = add_missing_work(trace, paused, calls, missing)
    found = add_iterations_without_work(trace, paused, calls, iterations)
    silent = max((int((one.unrecorded.lost == Lost.NO_DEVICE_ROWS).sum()) for one in found), default=0)
    if silent:
        problems.add(
            ProblemKind.WORK_MISSING, f"{silent} iteration{'s' * (silent > 1)} without any row of the device", silent
        )
    return found


def list_unrecorded(works: Sequence[DeviceWork]) -> list[UnrecordedTime]:
    """The time that was not recorded between the first start and the last end of each device's work, by reason."""
    found = []
    for lost, reason in _REASONS.items():
        time_ns = sum(work.unrecorded_ns(lost) for work in works)
        if time_ns:
            found.append(UnrecordedTime(reason=reason, time_ns=time_ns))
    return found
