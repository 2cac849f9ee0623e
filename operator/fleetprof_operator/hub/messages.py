"""What a sidecar may send: limits on everything, checked before anything else looks at a message.

Guarantees: pure; a message that passes has bounded lists, bounded strings, an id that is safe in logs and, for a rank,
a number that is one. The sentence of a ProtocolError is sent back to the sidecar, so it names the field and the rule.
"""

import re
from collections.abc import Iterable
from typing import Final

from fleetprof_api import hub_pb2 as pb
from google.protobuf.message import DecodeError

MAX_MESSAGE_BYTES: Final = 4 << 20
MAX_PROCESSES: Final = 1024
MAX_HELD: Final = 8192
MAX_LABELS: Final = 128
MAX_TEXT: Final = 1024
MAX_RANK: Final = 1_000_000
PROTOCOL_VERSION: Final = 1
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class ProtocolError(Exception):
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
        case "event":
            _check_event(message.event)
        case "upload_request":
            asked = message.upload_request
            _check_ids(asked.capture_id, asked.process_id)
            _check_rank(asked.rank)
        case "upload_done":
            done = message.upload_done
            _check_ids(done.capture_id, done.process_id)
            _check_texts("upload_done", [done.upload_id, *done.etags])
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
    identity = hello.identity
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
    _check_processes(hello.processes)
    _check_count("hello.held", len(hello.held), MAX_HELD)
    for event in hello.held:
        _check_event(event)


def _check_processes(processes: Iterable[pb.Process]) -> None:
    seen = set()
    for process in processes:
        _check_id("process.process_id", process.process_id)
        if process.process_id in seen:
            raise ProtocolError(f"process.process_id: {process.process_id} comes twice")
        seen.add(process.process_id)
        if process.HasField("rank"):
            _check_rank(process.rank)
        if not 0 <= process.world_size <= MAX_RANK:
            raise ProtocolError(f"process.world_size: must be 0 to {MAX_RANK}, got {process.world_size}")
        for name, value in (
            ("poll_interval_ns", process.poll_interval_ns),
            ("step.step", process.step.step),
            ("step.iteration_ns", process.step.iteration_ns),
            ("step.steps_per_iteration", process.step.steps_per_iteration),
        ):
            if value < 0:
                raise ProtocolError(f"process.{name}: must not be negative, got {value}")
        texts = [process.torch_version, process.python_version, process.device_kind, process.device_name]
        _check_texts("process", texts)
    _check_count("processes", len(seen), MAX_PROCESSES)


def _check_event(event: pb.CaptureEvent) -> None:
    _check_ids(event.capture_id, event.process_id)
    _check_rank(event.rank)
    if event.state not in pb.RankState.values() or event.state == pb.RANK_STATE_UNSPECIFIED:
        raise ProtocolError(f"event.state: {event.state} is not a state")
    _check_texts("event", [event.reason, event.message, event.sha256])
    if event.trace_bytes < 0 or event.compressed_bytes < 0:
        raise ProtocolError("event: sizes must not be negative")
    for name in ("asked", "armed", "started", "written", "uploaded", "failed"):
        if getattr(event, f"{name}_unix_ns") < 0:
            raise ProtocolError(f"event.{name}_unix_ns: must not be negative")


def _check_ids(capture_id: str, process_id: str) -> None:
    _check_id("capture_id", capture_id)
    _check_id("process_id", process_id)


def _check_id(field: str, value: str) -> None:
    if not _ID.fullmatch(value):
        raise ProtocolError(f"{field}: must be 1 to 128 of A-Z a-z 0-9 . _ : -, got {value[:40]!r}")


def _check_rank(rank: int) -> None:
    if not 0 <= rank <= MAX_RANK:
        raise ProtocolError(f"rank: must be 0 to {MAX_RANK}, got {rank}")


def _check_count(field: str, count: int, most: int) -> None:
    if count > most:
        raise ProtocolError(f"{field}: at most {most}, got {count}")


def _check_texts(field: str, texts: Iterable[str]) -> None:
    for text in texts:
        if len(text) > MAX_TEXT:
            raise ProtocolError(f"{field}: a text of {len(text)} characters, at most {MAX_TEXT}")
