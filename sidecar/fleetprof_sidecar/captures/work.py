"""The slow work of a capture: compressing, gathering samples, delivering to the store. Tasks, one set per capture.

Guarantees: each piece of work ends in one event for its capture, also when it fails in a way that nobody foresaw;
`stop` ends all work of a capture, `close` all work.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, Protocol

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
from fleetprof_sidecar.capture.process_capture import CaptureKey, ProcessCapture
from fleetprof_sidecar.captures.compression_queue import CompressionQueue
from fleetprof_sidecar.captures.summary_queue import SummaryQueue
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.delivery.file_delivery import FileDelivery, GaveUp, Uploads
from fleetprof_sidecar.delivery.spool import NoRoom, Spool
from fleetprof_sidecar.hub.outbox import HubSender
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.samples.rank_recorders import RankRecorders
from fleetprof_sidecar.samples.rank_samples import PodFacts, RankRecorder, after_window_ns
from fleetprof_sidecar.samples.sampler import Sampler

# The last datagrams of an agent's after-window.
_SAMPLES_MARGIN_NS: Final = 1_000_000_000
_CANARY_MARGIN_NS: Final = 200_000_000

# What each kind of object is: the field of the capture that holds its file, and the event when it is stored.
_Stored = type[TraceStored] | type[SamplesStored] | type[SummaryStored]
_DELIVERED: Final[dict[int, tuple[Literal["trace", "samples", "summary"], _Stored]]] = {
    hub_pb2.TRACE: ("trace", TraceStored),
    hub_pb2.SAMPLES: ("samples", SamplesStored),
    hub_pb2.SUMMARY: ("summary", SummaryStored),
}
log = logging.getLogger(__name__)


class EventSink(Protocol):
    """The sink of captures' events: to `HeldCaptures`, which starts the work and names itself."""

    def apply(self, key: CaptureKey, event: Event) -> None:
        """Something happened to a capture."""


class CaptureWork:
    """Starts the work of captures; each piece is given the `sink` of its event."""

    def __init__(
        self,
        *,
        processes: Processes,
        traces: TracesDirectory,
        spool: Spool,
        sampler: Sampler,
        recorders: RankRecorders,
        hub: HubSender,
        uploads: Uploads,
        pod: Callable[[], PodFacts] = PodFacts,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._processes = processes
        self._traces = traces
        self._spool = spool
        self._sampler = sampler
        self._recorders = recorders
        self._hub = hub
        self._uploads = uploads
        self._pod = pod
        self._clock = clock
        self._compression = CompressionQueue(spool, traces)
        self._summaries = SummaryQueue(spool)
        self._deliveries: dict[tuple[CaptureKey, int], FileDelivery] = {}
        self._tasks: dict[CaptureKey, set[asyncio.Task[None]]] = {}

    # ------------------------------------------------------------ samples while the capture runs

    def begin_samples(self, key: CaptureKey, capture: ProcessCapture) -> None:
        """Records what is said of this rank from now on."""
        self._recorders.begin(key)
        self._sampler.begin(key, capture.terms.sample_interval_ns, counters=capture.terms.device_counters)

    def end_samples(self, key: CaptureKey) -> RankRecorder | None:
        """Records no more; what was recorded."""
        self._sampler.end(key)
        return self._recorders.end(key)

    # ------------------------------------------------------------ tasks

    def compress(self, key: CaptureKey, capture: ProcessCapture, sink: EventSink) -> None:
        """Verifies and compresses the finished trace; ends in FileChecked or FileRejected."""
        self._start(key, self._compress(key, capture, sink), sink)

    def gather_samples(self, key: CaptureKey, capture: ProcessCapture, sink: EventSink) -> None:
        """Makes the samples file after the after-window; ends in SamplesReady."""
        self._start(key, self._gather_samples(key, capture, sink), sink)

    def summarise(self, key: CaptureKey, capture: ProcessCapture, sink: EventSink) -> None:
        """Makes the summary of trace and samples; ends in SummaryReady."""
        self._start(key, self._summarise(key, capture, sink), sink)

    def deliver(
        self, key: CaptureKey, capture: ProcessCapture, kind: hub_pb2.ObjectKind.ValueType, sink: EventSink
    ) -> None:
        """Brings a file into the store; ends in TraceStored, SamplesStored, SummaryStored or UploadEnded."""
        self._start(key, self._deliver(key, capture, kind, sink), sink)

    def answer(self, key: CaptureKey, kind: int, message: hub_pb2.UploadGrant | hub_pb2.UploadVerdict) -> None:
        """An answer of the hub to a delivery; one that nobody waits for is dropped."""
        delivery = self._deliveries.get((key, kind))
        if delivery is not None:
            delivery.receive(message)

    def ask_again(self) -> None:
        """The connection to the hub is new: questions that were asked before were lost."""
        for delivery in self._deliveries.values():
            delivery.receive(None)

    def problem_of(self, key: CaptureKey) -> str:
        """The reason why the trace, or its summary, is not in the store yet, as far as known."""
        kinds = (hub_pb2.TRACE, hub_pb2.SUMMARY)
        waiting = [self._deliveries[key, kind] for kind in kinds if (key, kind) in self._deliveries]
        return waiting[0].last_problem if waiting else ""

    def stop(self, key: CaptureKey) -> None:
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

    def _start(self, key: CaptureKey, work: Coroutine[Any, Any, None], sink: EventSink) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.setdefault(key, set()).add(task)
        task.add_done_callback(lambda ended: self._finish(key, ended, sink))

    def _finish(self, key: CaptureKey, task: asyncio.Task[None], sink: EventSink) -> None:
        group = self._tasks.get(key, set())
        group.discard(task)
        if not group:
            self._tasks.pop(key, None)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("capture work failed", exc_info=problem, extra={"capture": key[0], "process_id": key[1]})
            sink.apply(key, Cancel(Reason.INTERNAL, f"the sidecar failed: {problem}", self._clock()))

    async def _compress(self, key: CaptureKey, capture: ProcessCapture, sink: EventSink) -> None:
        name = capture.file_name
        event = await self._compression.compress(capture, self._clock())
        if isinstance(event, FileChecked) and event.optimizer_step and event.trace_id == capture.terms.trace_id:
            # Without an agent nothing else tells a trainer from its launcher and its data loaders.
            self._processes.mark_trainer(key[1])
        sink.apply(key, event)
        # Only now: the journal knows the compressed copy.
        if not self._traces.delete(name):
            log.error("no permission to delete %s", name, extra={"capture": key[0], "process_id": key[1]})

    async def _gather_samples(self, key: CaptureKey, capture: ProcessCapture, sink: EventSink) -> None:
        after = after_window_ns(capture.terms) if capture.terms.has_agent else 0
        margin = _CANARY_MARGIN_NS if capture.terms.canary else _SAMPLES_MARGIN_NS
        # From now: the agent was told a moment ago, after the compression, which takes as long as the trace is large.
        until = self._clock() + after + margin
        await asyncio.sleep((after + margin) / 1e9)
        recorder = self.end_samples(key) or RankRecorder()
        if capture.terms.has_agent:
            sink.apply(key, TimeMeasured(recorder.measure_time(capture), self._clock()))
        if capture.terms.canary:
            return
        host = self._sampler.host_columns(capture.asked_unix_ns, until)
        document = recorder.document(capture, self._processes.get(key[1]), self._pod(), host)
        try:
            event = SamplesReady(self._spool.write_samples(capture, document), "", self._clock())
        except (NoRoom, OSError) as problem:
            event = SamplesReady(None, str(problem), self._clock())
        sink.apply(key, event)

    async def _summarise(self, key: CaptureKey, capture: ProcessCapture, sink: EventSink) -> None:
        sink.apply(key, await self._summaries.make(capture, self._clock()))

    async def _deliver(
        self, key: CaptureKey, capture: ProcessCapture, kind: hub_pb2.ObjectKind.ValueType, sink: EventSink
    ) -> None:
        what, event_type = _DELIVERED[kind]
        file = getattr(capture, what)
        assert file is not None
        delivery = FileDelivery(capture.terms, kind, file, self._hub, self._uploads)
        self._deliveries[key, kind] = delivery
        event: Event
        try:
            await delivery.run()
            event = event_type(self._clock())
        except GaveUp as reason:
            event = UploadEnded(str(reason), what, self._clock())
        finally:
            del self._deliveries[key, kind]
        sink.apply(key, event)
