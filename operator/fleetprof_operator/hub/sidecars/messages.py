"""The limits of a sidecar's messages: limits on everything, checked before anything else looks at a message.

Guarantees: pure; a message that passes has bounded lists, bounded strings in which everything is printable (so that no
ledger, log, status or event holds a line break or an escape that a sidecar made up), an id that is safe in logs and,
for a rank, a number that is one. The sentence of a ProtocolError is sent back to the sidecar, so it names the field and
the rule.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.limits import HIGHEST_RANK
from fleetprof_api.plain_text import make_printable
from fleetprof_api.stacks import MOST_BYTES as MOST_STACKS_BYTES
from google.protobuf.message import DecodeError, Message

MAX_MESSAGE_BYTES: Final = 1 << 20
MAX_PROCESSES: Final = 1024
MAX_HELD: Final = 4096
MAX_ITEMS: Final = 1024  # parts of an upload, and their ETags
MAX_LABELS: Final = 128
MAX_SOURCES: Final = 64
MAX_TEXT: Final = 1024
MAX_WORD: Final = 256  # versions, kinds, names of devices
MAX_IDENTITY_BYTES: Final = 64 << 10
PROTOCOL_VERSION: Final = 1
_COSTS: Final = tuple(field.name for field in pb.RecordingCost.DESCRIPTOR.fields)
_TIME_COSTS: Final = tuple(field.name for field in pb.TimeCost.DESCRIPTOR.fields)
_TIMES: Final = tuple(f"{name}_unix_ns" for name in ("asked", "armed", "started", "written", "uploaded", "failed"))
_STATES: Final = frozenset(pb.RankState.values()) - {pb.RANK_STATE_UNSPECIFIED}
_SOURCES: Final = frozenset(pb.Source.values())
_INT64: Final = 2**63 - 1
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class ProtocolError(FleetprofError):
    """A message that breaks the protocol; the stream ends with this sentence."""


def parse_message(data: bytes) -> pb.SidecarMessage:
    """A sidecar's message from its bytes. Raises ProtocolError."""
    try:
        message = pb.SidecarMessage.FromString(data)
    except DecodeError:
        raise ProtocolError("a message is not a fleetprof.v1.SidecarMessage") from None
    match message.WhichOneof("body"):
        case "hello":
            _check_hello(message.hello)
        case "heartbeat":
            _check_processes(message.heartbeat.processes)
            _check_count("heartbeat.devices", len(message.heartbeat.devices), MAX_PROCESSES)
        case "telemetry":
            _check_telemetry(message.telemetry)
        case "event":
            _check_event(message.event)
        case "upload_request":
            upload_request = message.upload_request
            _check_ids(upload_request.capture_id, upload_request.process_id)
            _check_rank(upload_request.rank)
            _check_count("upload_request.parts", len(upload_request.parts), MAX_ITEMS)
            _check_texts("upload_request", [upload_request.unreached])
            _make_printable(upload_request, "unreached")
        case "upload_done":
            completion = message.upload_done
            _check_ids(completion.capture_id, completion.process_id)
            _check_count("upload_done.etags", len(completion.etags), MAX_ITEMS)
            _check_texts("upload_done", [completion.upload_id, *completion.etags])
            _make_printable(completion, "upload_id")
            if not all(etag.isprintable() for etag in completion.etags):
                completion.etags[:] = [make_printable(etag) for etag in completion.etags]
        case "stacks":
            _check_id("stacks.question", message.stacks.question)
            _check_id("stacks.process_id", message.stacks.process_id)
            _check_texts("stacks", [message.stacks.stacks_json], MOST_STACKS_BYTES)
            _make_printable(message.stacks, "stacks_json")
        case _:
            raise ProtocolError("a message has no body that this hub knows; update the older side")
    return message


def _check_hello(hello: pb.Hello) -> None:
    if hello.protocol_version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"hello.protocol_version: this hub speaks {PROTOCOL_VERSION}, got {hello.protocol_version}; "
            "update the older side"
        )
    _check_id("hello.sidecar_id", hello.sidecar_id)
    _check_texts("hello", [hello.version])
    _make_printable(hello, "version")
    identity = hello.identity
    if (size_bytes := identity.ByteSize()) > MAX_IDENTITY_BYTES:
        raise ProtocolError(
            f"hello.identity: {size_bytes} bytes, at most {MAX_IDENTITY_BYTES}; has the pod many labels?"
        )
    _check_count("hello.identity.labels", len(identity.labels), MAX_LABELS)
    _check_texts("hello.identity.labels", [*identity.labels.keys(), *identity.labels.values()])
    _check_texts(
        "hello.identity",
        [
            identity.namespace,
            identity.pod_name,
            identity.pod_uid,
            identity.node_name,
            identity.host_name,
            identity.workload.api_version,
            identity.workload.kind,
            identity.workload.name,
        ],
    )
    _make_printable(identity, "namespace", "pod_name", "pod_uid", "node_name", "host_name")
    _make_printable(identity.workload, "api_version", "kind", "name")
    if not all(key.isprintable() and value.isprintable() for key, value in identity.labels.items()):
        labels = {make_printable(key): make_printable(value) for key, value in identity.labels.items()}
        identity.labels.clear()
        identity.labels.update(labels)
    _check_processes(hello.processes)
    _check_count("hello.held", len(hello.held), MAX_HELD)
    for event in hello.held:
        _check_event(event)


def _check_processes(processes: Sequence[pb.Process]) -> None:
    _check_count("processes", len(processes), MAX_PROCESSES)
    seen = set()
    for process in processes:
        _check_id("process.process_id", process.process_id)
        if process.process_id in seen:
            raise ProtocolError(f"process.process_id: {process.process_id} comes twice")
        seen.add(process.process_id)
        if process.HasField("rank"):
            _check_rank(process.rank)
        if not 0 <= process.world_size <= HIGHEST_RANK:
            raise ProtocolError(f"process.world_size: must be 0 to {HIGHEST_RANK}, got {process.world_size}")
        for name, value in (
            ("poll_interval_ns", process.poll_interval_ns),
            ("poll_lateness_ns", process.poll_lateness_ns),
            ("memory_headroom_bytes", process.memory_headroom_bytes),
            ("step.step", process.step.step),
            ("step.iteration_ns", process.step.iteration_ns),
            ("step.fastest_iteration_ns", process.step.fastest_iteration_ns),
            ("step.steps_per_iteration", process.step.steps_per_iteration),
        ):
            if value < 0:
                raise ProtocolError(f"process.{name}: must not be negative, got {value}")
        texts = [process.torch_version, process.python_version, process.device_kind, process.device_name]
        texts += [process.profiler.name]
        _check_texts("process", texts, MAX_WORD)
        _make_printable(process, "torch_version", "python_version", "device_kind", "device_name")
        if process.HasField("profiler"):
            _make_printable(process.profiler, "name")


def _check_telemetry(report: pb.Telemetry) -> None:
    _check_count("telemetry.ranks", len(report.ranks), MAX_PROCESSES)
    _check_count("telemetry.unreadable", len(report.unreadable), MAX_SOURCES)
    if not _SOURCES.issuperset(report.unreadable):  # of a newer sidecar
        report.unreadable[:] = [source for source in report.unreadable if source in _SOURCES]
    for rank in report.ranks:
        _check_id("telemetry.process_id", rank.process_id)
        _check_numbers("telemetry.ranks", rank)
    _check_numbers("telemetry.host", report.host)


def _check_numbers(field: str, message: Message) -> None:
    for part, value in message.ListFields():
        if isinstance(value, int) and not 0 <= value <= (1000 if part.name.endswith("_permille") else _INT64):
            raise ProtocolError(f"{field}.{part.name}: out of range, got {value}")


def _check_event(event: pb.CaptureEvent) -> None:
    _check_ids(event.capture_id, event.process_id)
    _check_rank(event.rank)
    if event.state not in _STATES:
        raise ProtocolError(f"event.state: {event.state} is not a state")
    _check_texts("event", [event.reason, event.message, event.sha256])
    _make_printable(event, "reason", "message", "sha256")
    if event.trace_bytes < 0 or event.compressed_bytes < 0:
        raise ProtocolError("event: sizes must not be negative")
    if event.HasField("recording_cost") and min(getattr(event.recording_cost, name) for name in _COSTS) < 0:
        raise ProtocolError("event.recording_cost: must not be negative")
    if event.HasField("time_cost") and min(getattr(event.time_cost, name) for name in _TIME_COSTS) < 0:
        raise ProtocolError("event.time_cost: must not be negative")
    times = (
        event.asked_unix_ns,
        event.armed_unix_ns,
        event.started_unix_ns,
        event.written_unix_ns,
        event.uploaded_unix_ns,
        event.failed_unix_ns,
    )
    if min(times) < 0:
        name = next(name for name in _TIMES if getattr(event, name) < 0)
        raise ProtocolError(f"event.{name}: must not be negative")


def _check_ids(capture_id: str, process_id: str) -> None:
    _check_id("capture_id", capture_id)
    _check_id("process_id", process_id)


def _check_id(field: str, value: str) -> None:
    if not _ID.fullmatch(value):
        raise ProtocolError(f"{field}: must be 1 to 128 of A-Z a-z 0-9 . _ : -, got {value[:40]!r}")


def _check_rank(rank: int) -> None:
    if not 0 <= rank <= HIGHEST_RANK:
        raise ProtocolError(f"rank: must be 0 to {HIGHEST_RANK}, got {rank}")


def _check_count(field: str, count: int, most: int) -> None:
    if count > most:
        raise ProtocolError(f"{field}: at most {most}, got {count}")


def _check_texts(field: str, texts: Iterable[str], most: int = MAX_TEXT) -> None:
    for text in texts:
        if len(text) > most:
            raise ProtocolError(f"{field}: a text of {len(text)} characters, at most {most}")


def _make_printable(message: Message, *names: str) -> None:
    for name in names:
        text = getattr(message, name)
        if not text.isprintable():
            setattr(message, name, make_printable(text))
