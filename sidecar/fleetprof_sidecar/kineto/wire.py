"""Kineto's on-demand datagrams, parsed and built: header `<Q32s`, then the payload (libkineto, IPCFabric).

Guarantees: `parse` raises nothing but ValueError, whatever the bytes; what `build_reply` makes always has a header
whose size equals the payload's, is never shorter than a header and holds plain ASCII, because a client that reads
anything else from its socket is harmed for the rest of its life (a wrong size is allocated, a short datagram is run as
a config).
"""

import struct
from dataclasses import dataclass
from typing import Final

HEADER_BYTES: Final = 40
MAX_REQUEST_BYTES: Final = 1024
MAX_CONFIG_BYTES: Final = 4096
MAX_PIDS: Final = 64
IDLE: Final = 2  # mask bit ACTIVITIES: this process would take a config now

_HEADER: Final = struct.Struct("<Q32s")
_CONTEXT: Final = struct.Struct("<iiq")
_REQUEST: Final = struct.Struct("<iiq")
_COUNT: Final = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """`ctxt`: an old client announces itself and waits for a count of instances."""

    device: int
    pid: int
    job_id: int


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """`req`: a client asks for a config. `pids` is its own pid and then its ancestors', in its own pid namespace."""

    mask: int
    job_id: int
    pids: tuple[int, ...]

    @property
    def idle(self) -> bool:
        """Tells whether Kineto would take a config now; false while a trace runs or the user's profiler is on."""
        return bool(self.mask & IDLE)


def parse(data: bytes) -> ContextMessage | RequestMessage:
    """One datagram from a client. Raises ValueError for anything that is not exactly one whole message."""
    if len(data) > MAX_REQUEST_BYTES:
        raise ValueError(f"datagram of {len(data)} bytes, at most {MAX_REQUEST_BYTES}")
    if len(data) < HEADER_BYTES:
        raise ValueError(f"datagram of {len(data)} bytes, the header alone has {HEADER_BYTES}")
    size, kind = _HEADER.unpack_from(data)
    payload = data[HEADER_BYTES:]
    if size != len(payload):
        raise ValueError(f"header says {size} bytes of payload, {len(payload)} are there")
    match kind.rstrip(b"\0"):
        case b"ctxt":
            if len(payload) != _CONTEXT.size:
                raise ValueError(f"ctxt with {len(payload)} bytes of payload, not {_CONTEXT.size}")
            return ContextMessage(*_CONTEXT.unpack(payload))
        case b"req":
            return _parse_request(payload)
    raise ValueError("unknown message type")


def _parse_request(payload: bytes) -> RequestMessage:
    if len(payload) < _REQUEST.size:
        raise ValueError(f"req with {len(payload)} bytes of payload, at least {_REQUEST.size}")
    mask, count, job_id = _REQUEST.unpack_from(payload)
    if not 1 <= count <= MAX_PIDS or len(payload) != _REQUEST.size + 4 * count:
        raise ValueError(f"req that names {count} pids in {len(payload)} bytes")
    pids = struct.unpack_from(f"<{count}i", payload, _REQUEST.size)
    if any(pid <= 0 for pid in pids):
        raise ValueError("req with a pid that is not positive")
    return RequestMessage(mask, job_id, pids)


def build_reply(config: str = "") -> bytes:
    """The answer to `req`: a config, or nothing to do. Raises ValueError for what must never reach a client."""
    if not config.isascii() or "\0" in config or "\r" in config:
        raise ValueError("a config must be plain ASCII without NUL and CR")
    payload = config.encode("ascii")
    if len(payload) > MAX_CONFIG_BYTES:
        raise ValueError(f"config of {len(payload)} bytes, at most {MAX_CONFIG_BYTES}")
    return _HEADER.pack(len(payload), b"req") + payload


def build_context_reply(instances: int) -> bytes:
    """The answer to `ctxt`: how many instances are registered."""
    payload = _COUNT.pack(instances)
    return _HEADER.pack(len(payload), b"ctxt") + payload
