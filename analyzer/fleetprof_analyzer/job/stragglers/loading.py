"""The saving of a job if no rank waited for a batch: loaders that are slow on all ranks are nobody's fault.

The devices' idle time shows a part of it only: one rank's late batch lets the others wait in a collective.
Guarantees: pure; no gain where the replay does not reproduce the measured time.
"""

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.replay import Replay


def measure_loading_gain(replay: Replay) -> float:
    """Share of the window's length that goes if all data loading takes no time."""
    with_host = replay.has_host[replay.layout.rank]
    work = np.where(with_host, replay.work_ns, np.maximum(replay.work_ns - replay.parts_ns["data"], 0))
    host = np.where(with_host, np.maximum(replay.host_ns - replay.host_parts_ns["data"], 0), replay.host_ns)
    outcome = replay.run([replay.as_measured(), replay.with_times(work, host, replay.iteration >= 0)])
    measured = float(outcome.total_ns[0])
    return max(1 - float(outcome.total_ns[1]) / measured, 0.0) if measured > 0 else 0.0
