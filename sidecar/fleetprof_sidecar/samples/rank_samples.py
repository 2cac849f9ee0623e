"""Collects what belongs to one rank around one capture and makes its `RankSamples` document.

Guarantees: columns stay of equal length and bounded, whatever the agent sends (its messages were checked for types by
agent_messages.py); rows are in time order without repetition, because datagrams may come twice or out of order.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from fleetprof_api.ledger import TimeCost
from fleetprof_api.samples import DeviceColumns, HostColumns, RankSamples, StepColumns

from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.samples.module_recorder import ModuleRecorder
from fleetprof_sidecar.samples.thread_recorder import ThreadRecorder
from fleetprof_sidecar.samples.time_cost import measure_time

_MOST_ROWS: Final = 50_000
_DEVICE_COLUMNS: Final = tuple(name for name in DeviceColumns.__struct_fields__ if name != "at_unix_ns")
# How long the iterations after the window are watched, to tell what the capture leaves behind.
_LEAST_AFTER_NS: Final = 1_000_000_000
_MOST_AFTER_NS: Final = 5_000_000_000
_AFTER_ITERATIONS: Final = 10
# After a canary: the others wait for it, and one whole iteration tells that the rank goes on.
_LEAST_AFTER_CANARY_NS: Final = 200_000_000
_MOST_AFTER_CANARY_NS: Final = 20_000_000_000


def after_window_ns(terms: Terms) -> int:
    """The time for which samples go on after the trace."""
    if terms.canary:
        return min(_MOST_AFTER_CANARY_NS, max(_LEAST_AFTER_CANARY_NS, 5 * terms.iteration_ns // 2))
    return min(_MOST_AFTER_NS, max(_LEAST_AFTER_NS, _AFTER_ITERATIONS * terms.iteration_ns))


@dataclass(frozen=True, slots=True)
class PodFacts:
    """The facts of the pod (or host) that all its ranks share. "" and None: not known."""

    host_name: str = ""
    node_name: str = ""
    samples_per_iteration: int | None = None


class RankRecorder:
    """The words of the agent, or of the sidecar's own device source, about one rank during one capture."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._device: dict[int, dict[str, int | None]] = {}
        self.thread = ThreadRecorder()
        self.modules = ModuleRecorder()

    def add_steps(self, steps: list[int], end_unix_ns: list[int]) -> None:
        """Ends of optimizer steps; of a step that is told twice the first word counts."""
        for step, end in zip(steps, end_unix_ns, strict=False):
            if len(self._steps) < _MOST_ROWS:
                self._steps.setdefault(step, end)

    def add_device(self, columns: Mapping[str, Any]) -> None:
        """Device samples as in wire.py's `device`: lists by column name, `at_unix_ns` among them."""
        for row, at in enumerate(columns.get("at_unix_ns", [])):
            if len(self._device) >= _MOST_ROWS:
                return
            self._device[at] = {name: columns[name][row] for name in _DEVICE_COLUMNS if name in columns}

    def measure_time(self, capture: ProcessCapture) -> TimeCost:
        """The effect of the recording on the iterations, as far as was said."""
        return measure_time(self._steps, capture.terms, capture.written_unix_ns)

    def document(self, capture: ProcessCapture, view: ProcessView | None, pod: PodFacts, host: HostColumns) -> bytes:
        """`samples.json` of this rank."""
        steps, rows = sorted(self._steps.items()), sorted(self._device.items())
        device: dict[str, list[Any]] = {name: [row.get(name) for _, row in rows] for name in _DEVICE_COLUMNS}
        samples = RankSamples(
            rank=capture.terms.rank,
            pid=capture.terms.pid,
            host_name=pod.host_name,
            node_name=pod.node_name,
            host_cores=os.cpu_count(),
            samples_per_iteration=pod.samples_per_iteration,
            agent=capture.terms.has_agent,
            steps_per_iteration=capture.terms.steps_per_iteration,
            armed_unix_ns=capture.armed_unix_ns,
            started_unix_ns=capture.started_unix_ns,
            written_unix_ns=capture.written_unix_ns,
            trace_id=capture.terms.trace_id,
            steps=StepColumns(step=[step for step, _ in steps], end_unix_ns=[end for _, end in steps]),
            device=DeviceColumns(at_unix_ns=[at for at, _ in rows], **device),
            host=host,
        )
        self.thread.fill(samples)
        samples.modules = self.modules.columns()
        if view is not None:
            samples.local_rank = view.local_rank
            samples.world_size = view.world_size
            samples.torch_version = view.torch_version
            samples.python_version = view.python_version
            samples.device_kind = view.device_kind
            samples.device_name = view.device_name
            samples.host_name = view.host_name or pod.host_name
        return msgspec.json.encode(samples)
