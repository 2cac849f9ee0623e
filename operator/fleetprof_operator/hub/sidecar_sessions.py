"""The sessions of sidecars, from a stream's first message to its end: who is there, and which capture hears it.

Guarantees: a sidecar is heard by captures of its own namespace only; whoever holds a capture that nobody knows any more
is told to let go of it.
"""

from collections.abc import Callable

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.process.version import VERSION

from fleetprof_operator.hub.capture.request_capture import RequestCapture
from fleetprof_operator.hub.capture_registry import CaptureRegistry
from fleetprof_operator.hub.planning.canary import find_owner
from fleetprof_operator.hub.planning.orders import build_release
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.sidecars.messages import PROTOCOL_VERSION, ProtocolError
from fleetprof_operator.hub.sidecars.sidecar_registry import Link, SidecarRecord, SidecarRegistry
from fleetprof_operator.hub.stack_questions import StackQuestions
from fleetprof_operator.hub.telemetry.board import TelemetryBoard


class SidecarSessions:
    """The sessions of all sidecars, over the registry of sidecars and that of captures."""

    def __init__(
        self,
        registry: SidecarRegistry,
        captures: CaptureRegistry,
        telemetry: TelemetryBoard,
        stacks: StackQuestions,
        settings: HubSettings,
        clock: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._captures = captures
        self._telemetry = telemetry
        self._stacks = stacks
        self._settings = settings
        self._clock = clock

    def connect(self, hello: pb.Hello, link: Link, *, proved_pod_uid: str = "") -> SidecarRecord:
        """A sidecar's stream begins. The caller gives the record back with every message and at the end.

        `proved_pod_uid` is the pod's by its token; it has one stream. Raises ProtocolError when the sidecar's id is
        that of a sidecar in another namespace or pod, OverBudget when too much would be kept of it.
        """
        known = self._registry.find(hello.sidecar_id)
        if known is not None and known.identity.namespace != hello.identity.namespace:
            raise ProtocolError("hello.sidecar_id: is that of a sidecar in another namespace")
        if known is not None and known.identity.pod_uid != hello.identity.pod_uid:
            raise ProtocolError("hello.sidecar_id: is that of a sidecar in another pod")
        self._registry.forget(self._clock() - self._settings.sidecar_forgotten_ns)
        record = self._registry.connect(hello, link, self._clock(), proved_pod_uid=proved_pod_uid)
        link.send(
            pb.HubMessage(
                welcome=pb.Welcome(
                    protocol_version=PROTOCOL_VERSION,
                    version=VERSION,
                    heartbeat_interval_ns=self._settings.heartbeat_interval_ns,
                    telemetry_interval_ns=self._settings.telemetry_interval_ns,
                    store_authority=self._settings.store_authority,
                    at_unix_ns=self._clock(),
                )
            )
        )
        held: dict[str, list[pb.CaptureEvent]] = {}
        for event in hello.held:
            if not self._hear_canary(event, record):
                held.setdefault(event.capture_id, []).append(event)
        for uid in held:
            if uid not in self._captures.by_uid:
                # `restore` read everything, so this request was deleted from the store: nobody waits for it.
                link.send(build_release(uid))
        for uid, capture in list(self._captures.by_uid.items()):
            same_namespace = capture.ledger.namespace == record.identity.namespace
            if same_namespace and (uid in held or not capture.finished):
                capture.welcome(record, held.get(uid, []))
        return record

    async def receive(self, record: SidecarRecord, message: pb.SidecarMessage) -> None:
        """One message of a connected sidecar. Uploads take as long as the store does. Raises OverBudget."""
        match message.WhichOneof("body"):
            case "heartbeat":
                self._registry.beat(record, message.heartbeat, self._clock())
            case "telemetry":
                now = self._clock()
                self._telemetry.sweep(now)
                self._telemetry.take(record, message.telemetry, now)
            case "stacks":
                self._stacks.take(message.stacks, record)
            case "event":
                if self._hear_canary(message.event, record):
                    return
                if capture := self._known(message.event.capture_id, record):
                    capture.hear(message.event, record)
            case "upload_request":
                if capture := self._known(message.upload_request.capture_id, record):
                    await capture.grant(message.upload_request, record)
            case "upload_done":
                if capture := self._known(message.upload_done.capture_id, record):
                    await capture.accept(message.upload_done, record)

    def disconnect(self, record: SidecarRecord, link: Link) -> None:
        """The end of a sidecar's stream."""
        now = self._clock()
        self._registry.disconnect(record, link, now)
        self._registry.forget(now - self._settings.sidecar_forgotten_ns)

    def _hear_canary(self, event: pb.CaptureEvent, record: SidecarRecord) -> bool:
        """Takes a word about a canary; False when it is about something else, or about a canary of nobody's."""
        capture = self._captures.by_uid.get(find_owner(event.capture_id))
        if capture is None or capture.ledger.namespace != record.identity.namespace:
            return False
        capture.hear_canary(event, record)
        return True

    def _known(self, uid: str, record: SidecarRecord) -> RequestCapture | None:
        capture = self._captures.by_uid.get(uid)
        if capture is None:
            if record.link is not None:
                record.link.send(build_release(uid))
            return None
        return capture if capture.ledger.namespace == record.identity.namespace else None
