"""The recorder of each rank's samples while it is captured: its agent, or the sidecar where it must.

Guarantees: one recorder per capture and process, from `begin` to `end`; a rank with the agent gets its device samples
from the agent alone.
"""

from collections.abc import Iterable

from fleetprof_sidecar.capture.process_capture import CaptureKey
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.samples.rank_samples import RankRecorder


class RankRecorders:
    """By (capture, process)."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._recorders: dict[CaptureKey, RankRecorder] = {}

    def begin(self, key: CaptureKey) -> None:
        """Records what is told of this rank from now on; repeating it changes nothing."""
        self._recorders.setdefault(key, RankRecorder())

    def end(self, key: CaptureKey) -> RankRecorder | None:
        """Records no more; returns what was recorded."""
        return self._recorders.pop(key, None)

    def get(self, key: CaptureKey) -> RankRecorder | None:
        """The recorder of messages about this capture of this process."""
        return self._recorders.get(key)

    def wants_devices(self) -> bool:
        """Tells whether a process is here whose devices no agent watches."""
        return any(view.polls_kineto and not view.has_agent for view in self._processes.snapshot())

    def add_devices(self, readings: Iterable[DeviceReading]) -> None:
        """Takes device samples of the sidecar: for the ranks that have no agent, by their local rank."""
        by_device = {reading.device: reading for reading in readings}
        for key, recorder in self._recorders.items():
            view = self._processes.get(key[1])
            if view is None or view.has_agent or view.local_rank is None or view.local_rank not in by_device:
                continue
            reading = by_device[view.local_rank]
            columns: dict[str, list[int | None]] = {name: [value] for name, value in reading.values.items()}
            recorder.add_device({**columns, "at_unix_ns": [reading.at_unix_ns]})
