"""Kineto's datagrams: what is accepted, what is built, and that no bytes do anything else."""

import struct

import pytest
from fleetprof_sidecar.kineto.wire import (
    MAX_CONFIG_BYTES,
    ContextMessage,
    RequestMessage,
    build_context_reply,
    build_reply,
    parse,
)
from hypothesis import given
from hypothesis import strategies as st
from kineto_messages import build_request, parse_reply

# A request of a torch 2.13 process, field by field: size 40, "req", mask 3, 6 pids (itself, then ancestors), job 0.
REAL_REQUEST = (
    (40).to_bytes(8, "little")
    + b"req".ljust(32, b"\0")
    + struct.pack("<iiq", 3, 6, 0)
    + struct.pack("<6i", 4711, 4700, 4600, 4500, 20, 10)
)


def datagram(kind: bytes, payload: bytes, size: int | None = None) -> bytes:
    return struct.pack("<Q32s", len(payload) if size is None else size, kind) + payload


def test_a_real_request_is_understood() -> None:
    message = parse(REAL_REQUEST)
    assert message == RequestMessage(mask=3, job_id=0, pids=(4711, 4700, 4600, 4500, 20, 10))
    assert len(REAL_REQUEST) == 80
    assert build_request(message) == REAL_REQUEST


@pytest.mark.parametrize(
    ("mask", "idle"), [(3, True), (1, False), (2, True), (0, False)], ids=["2.13", "2.13 busy", "2.15", "2.15 busy"]
)
def test_idle_is_bit_2_in_every_version(mask: int, idle: bool) -> None:
    assert RequestMessage(mask, 0, (1,)).idle is idle


def test_an_announcement_of_an_old_client_is_understood() -> None:
    assert parse(datagram(b"ctxt", struct.pack("<iiq", 1, 4711, 77))) == ContextMessage(1, 4711, 77)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "header alone"),
        (b"\0" * 39, "header alone"),
        (REAL_REQUEST[:-1], "header says 40"),
        (REAL_REQUEST + b"\0", "header says 40"),
        (datagram(b"req", REAL_REQUEST[40:], size=2**64 - 1), "header says"),
        (datagram(b"req", struct.pack("<iiq", 2, 0, 0)), "names 0 pids"),
        (datagram(b"req", struct.pack("<iiqi", 2, 2, 0, 5)), "names 2 pids"),
        (datagram(b"req", struct.pack("<iiqi", 2, -1, 0, 5)), "names -1 pids"),
        (datagram(b"req", struct.pack("<iiqi", 2, 2**31 - 1, 0, 5)), "pids"),
        (datagram(b"req", struct.pack("<iiqi", 2, 1, 0, 0)), "not positive"),
        (datagram(b"req", b"\0" * 15), "at least 16"),
        (datagram(b"ctxt", b"\0" * 15), "not 16"),
        (datagram(b"evil", b""), "unknown message type"),
        (datagram(b"req\0x", REAL_REQUEST[40:]), "unknown message type"),
        (b"x" * 5000, "at most"),
    ],
)
def test_anything_else_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(data)


@given(st.binary(max_size=2000) | st.binary(max_size=200).map(lambda tail: REAL_REQUEST[:40] + tail))
def test_no_bytes_raise_anything_but_value_error(data: bytes) -> None:
    try:
        message = parse(data)
    except ValueError:
        return
    assert isinstance(message, RequestMessage | ContextMessage)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), st.lists(st.integers(1, 2**31 - 1)))
def test_every_request_survives_the_way(mask: int, job_id: int, pids: list[int]) -> None:
    message = RequestMessage(mask, job_id, tuple(pids))
    if 1 <= len(pids) <= 64:
        assert parse(build_request(message)) == message
    else:
        with pytest.raises(ValueError, match="pids"):
            parse(build_request(message))


@given(st.text(max_size=300) | st.text(st.characters(max_codepoint=126), min_size=4000, max_size=4200))
def test_a_reply_says_its_true_size_or_is_never_built(config: str) -> None:
    try:
        reply = build_reply(config)
    except ValueError:
        assert not config.isascii() or "\0" in config or "\r" in config or len(config) > MAX_CONFIG_BYTES
        return
    size, kind = struct.unpack_from("<Q32s", reply)
    assert size == len(reply) - 40 == len(config)
    assert kind.rstrip(b"\0") == b"req"
    assert parse_reply(reply) == config


def test_nothing_to_do_is_a_header_alone() -> None:
    assert build_reply() == bytes(8) + b"req".ljust(32, b"\0")


def test_the_answer_to_an_announcement_is_a_count() -> None:
    assert build_context_reply(3) == (4).to_bytes(8, "little") + b"ctxt".ljust(32, b"\0") + struct.pack("<i", 3)
