"""A Kineto client's end of the protocol: the datagrams that it sends, those that it gets, and its files' names."""

import struct

from fleetprof_sidecar.kineto.wire import HEADER_BYTES, RequestMessage

HEADER = struct.Struct("<Q32s")


def build_request(message: RequestMessage) -> bytes:
    """The message of a client."""
    count = len(message.pids)
    payload = struct.pack(f"<iiq{count}i", message.mask, count, message.job_id, *message.pids)
    return HEADER.pack(len(payload), b"req") + payload


def parse_reply(data: bytes) -> str:
    """The config in an answer to `req`, "" when there is nothing to do. Raises ValueError."""
    if len(data) < HEADER_BYTES:
        raise ValueError(f"reply of {len(data)} bytes, the header alone has {HEADER_BYTES}")
    size, kind = HEADER.unpack_from(data)
    if kind.rstrip(b"\0") != b"req" or size != len(data) - HEADER_BYTES:
        raise ValueError("not a well-formed reply to req")
    return data[HEADER_BYTES:].decode("ascii")


def trace_path(output: str, pid: int) -> str:
    """The file of Kineto: the pid (its own namespace's) goes before `.json`; `.tmp` is appended until it is whole."""
    return f"{output.removesuffix('.json')}_{pid}.json"
