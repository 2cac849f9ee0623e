"""What takes time in a capture: compressing, gathering samples, delivering to the store. Tasks, one set per capture.

Guarantees: each piece of work ends in one event for its capture, also when it fails in a way that nobody foresaw;
`stop` ends all work of a capture, `close` all work.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Literal

from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import Reason

from fleetprof_sidecar.capture.events import (
    Cancel,
    Event,
    FileChecked,
    SamplesReady,
    SamplesStored,
    SummaryStored,
    TimeMeasured,
    TraceStored,
    UploadEnded,
)
from fleetprof_sidecar.capture.process_capture import Capture
from fleetprof_sidecar.captures.compression import Compression
from fleetprof_sidecar.captures.summaries import Summaries
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.delivery.file_delivery import Delivery, GaveUp, Put
from fleetprof_sidecar.delivery.spool import NoRoom, Spool
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.samples.rank_samples import RankRecorder, after_window_ns
from fleetprof_sidecar.samples.sampler import Sampling

# The last datagrams of an agent's after-window.
_SAMPLES_MARGIN_NS: Final = 1_000_000_000
_CANARY_MARGIN_NS: Final = 200_000_000

Key = tuple[str, str]
# What each kind of object is: the field of the capture that holds its file, and the event when it is stored.
_Stored = type[TraceStored] | type[SamplesStored] | type[SummaryStored]
_DELIVERED: Final[dict[int, tuple[Literal["trace", "samples", "summary"], _Stored]]] = {
    hub_pb2.TRACE: ("trace", TraceStored),
    hub_pb2.SAMPLES: ("samples", SamplesStored),
    hub_pb2.SUMMARY: ("summary", SummaryStored),
}
log = logging.getLogger(__name__)


class CaptureWork:
    """`apply` takes the events, `send` queues a message to the hub, `put` uploads parts (delivery.Put)."""

    def __init__(
        self,
        *,
        processes: Processes,
        traces: TracesDirectory,
        spool: Spool,
        sampling: Sampling,
        send: Callable[[hub_pb2.SidecarMessage], None],
        put: Put,
        host_name: str,
        clock: Callable[[], int],
        apply: Callable[[Key, Event], None],
    ) -> None:
        self._processes = processes
        self._traces = traces
        self._spool = spool
        self._sampling = sampling
        self._send = send
        self._put = put
        self._host_name = host_name
        self._clock = clock
        self._apply = apply
        self._compression = Compression(spool, traces)
        self._summaries = Summaries(spool)
        self._recorders: dict[Key, RankRecorder] = {}
        self._deliveries: dict[tuple[Key, int], Delivery] = {}
        self._tasks: dict[Key, set[asyncio.Task[None]]] = {}

    # ------------------------------------------------------------ samples while the capture runs

    def begin_samples(self, key: Key, capture: Capture) -> None:
        """Records what is said of this rank from now on."""
        self._recorders.setdefault(key, RankRecorder())
        self._sampling.begin(key, capture.terms.sample_interval_ns, counters=capture.terms.device_counters)

    def end_samples(self, key: Key) -> RankRecorder | None:
        """Records no more; what was recorded."""
        self._sampling.end(key)
        return self._recorders.pop(key, None)

    def recorder(self, key: Key) -> RankRecorder | None:
        """Where the agent's messages about this capture go."""
        return self._recorders.get(key)

    def add_devices(self, readings: Iterable[DeviceReading]) -> None:
        """Device samples taken here: for the ranks that have no agent, by their local rank."""
        by_device = {reading.device: reading for reading in readings}
        for key, recorder in self._recorders.items():
            view = self._processes.get(key[1])
            if view is None or view.has_agent or view.local_rank is None or view.local_rank not in by_device:
                continue
            reading = by_device[view.local_rank]
            columns: dict[str, list[int | None]] = {name: [value] for name, value in reading.values.items()}
            recorder.add_device({**columns, "at_unix_ns": [reading.at_unix_ns]})

    # ------------------------------------------------------------ tasks

    def compress(self, key: Key, capture: Capture) -> None:
        """Verifies and compresses the finished trace; ends in FileChecked or FileRejected."""
        self._start(key, self._compress(key, capture))

    def gather_samples(self, key: Key, capture: Capture) -> None:
        """Makes the samples file after the after-window; ends in SamplesReady."""
        self._start(key, self._gather_samples(key, capture))

    def summarise(self, key: Key, capture: Capture) -> None:
        """Makes the summary of trace and samples; ends in SummaryReady."""
        self._start(key, self._summarise(key, capture))

    def deliver(self, key: Key, capture: Capture, kind: hub_pb2.ObjectKind.ValueType) -> None:
        """Brings a file into the store; ends in TraceStored, SamplesStored, SummaryStored or UploadEnded."""
        self._start(key, self._deliver(key, capture, kind))

    def answer(self, key: Key, kind: int, message: hub_pb2.UploadGrant | hub_pb2.UploadVerdict) -> None:
        """An answer of the hub to a delivery; one that nobody waits for is dropped."""
        delivery = self._deliveries.get((key, kind))
        if delivery is not None:
            delivery.receive(message)

    def ask_again(self) -> None:
        """The connection to the hub is new: questions that were asked before were lost."""
        for delivery in self._deliveries.values():
            delivery.receive(None)

    def problem_of(self, key: Key) -> str:
        """Why the trace, or its summary, is not in the store yet, as far as known."""
        kinds = (hub_pb2.TRACE, hub_pb2.SUMMARY)
        waiting = [self._deliveries[key, kind] for kind in kinds if (key, kind) in self._deliveries]
        return waiting[0].last_problem if waiting else ""

    def stop(self, key: Key) -> None:
        """Ends everything of this capture, but for the task that calls."""
        for task in list(self._tasks.get(key, ())):
            if task is not asyncio.current_task():
                task.cancel()
        self.end_samples(key)

    async def close(self) -> None:
        """Ends everything."""
        tasks = [task for group in self._tasks.values() for task in group]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.setdefault(key, set()).add(task)
        task.add_done_callback(lambda ended: self._finish(key, ended))

    def _finish(self, key: Key, task: asyncio.Task[None]) -> None:
        group = self._tasks.get(key, set())
        group.discard(task)
        if not group:
            self._tasks.pop(key, None)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("capture work failed", exc_info=problem, extra={"capture": key[0], "process_id": key[1]})
            self._apply(key, Cancel(Reason.INTERNAL, f"the sidecar failed: {problem}", self._clock()))

    async def _compress(self, key: Key, capture: Capture) -> None:
        name = capture.file_name
        event = await self._compression.compress(capture, self._clock())
        if isinstance(event, FileChecked) and event.optimizer_step and event.trace_id == capture.terms.trace_id:
            # Without an agent nothing else tells a trainer from its launcher and its data loaders.
            self._processes.mark_trainer(key[1])
        self._apply(key, event)
        # Only now: the journal knows the compressed copy.
        if not self._traces.delete(name):
            log.error("no permission to delete %s", name, extra={"capture": key[0], "process_id": key[1]})

    async def _gather_samples(self, key: Key, capture: Capture) -> None:
        after = after_window_ns(capture.terms) if capture.terms.has_agent else 0
        margin = _CANARY_MARGIN_NS if capture.terms.canary else _SAMPLES_MARGIN_NS
        # From now: the agent was told a moment ago, after the compression, which takes as long as the trace is large.
        until = self._clock() + after + margin
        await asyncio.sleep((after + margin) / 1e9)
        recorder = self.end_samples(key) or RankRecorder()
        if capture.terms.has_agent:
            self._apply(key, TimeMeasured(recorder.measure_time(capture), self._clock()))
        if capture.terms.canary:
            return
        host = self._sampling.host_columns(capture.asked_unix_ns, until)
        document = recorder.document(capture, self._processes.get(key[1]), self._host_name, host)
        try:
            event = SamplesReady(self._spool.write_samples(capture, document), "", self._clock())
        except (NoRoom, OSError) as problem:
            event = SamplesReady(None, str(problem), self._clock())
        self._apply(key, event)

    async def _summarise(self, key: Key, capture: Capture) -> None:
        self._apply(key, await self._summaries.make(capture, self._clock()))

    async def _deliver(self, key: Key, capture: Capture, kind: hub_pb2.ObjectKind.ValueType) -> None:
        what, done = _DELIVERED[kind]
        file = getattr(capture, what)
        assert file is not None
        delivery = Delivery(capture.terms, kind, file, self._send, self._put)
        self._deliveries[key, kind] = delivery
        event: Event
        try:
            await delivery.run()
            event = done(self._clock())
        except GaveUp as reason:
            event = UploadEnded(str(reason), what, self._clock())
        finally:
            del self._deliveries[key, kind]
        self._apply(key, event)
