"""The traces that are taken, and what becomes of them."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleetprof_sidecar.children import compress
from fleetprof_sidecar.children.compress import PART_BYTES, TraceCheck, UnusableTrace, compress_file
from hypothesis import given, settings
from hypothesis import strategies as st

MIB = 1 << 20


def run(source: Path, target: Path, *more: str) -> dict[str, Any]:
    """The answer of the program."""
    command = [
        sys.executable,
        "-m",
        "fleetprof_sidecar.children.compress",
        str(target),
        f"--limit-bytes={64 * MIB}",
        *more,
    ]
    with source.open("rb") as file:
        result = subprocess.run(command, stdin=file, capture_output=True, timeout=120, check=True)
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_a_good_trace_becomes_gzip_with_checksums(tmp_path: Path, kineto_trace: Callable[..., bytes]) -> None:
    # Incompressible, so that there are several parts.
    noise = os.urandom(10 * MIB).hex()
    data = kineto_trace("cap-r0").replace(b"aten::op0", noise.encode())
    source, target = tmp_path / "in.json", tmp_path / "out.gz"
    source.write_bytes(data)
    answer = run(source, target)
    packed = target.read_bytes()
    assert gzip.decompress(packed) == data
    assert (answer["failure"], answer["trace_id"], answer["trace_bytes"]) == ("", "cap-r0", len(data))
    assert (answer["size_bytes"], answer["sha256"]) == (len(packed), hashlib.sha256(packed).hexdigest())
    parts = [packed[i : i + PART_BYTES] for i in range(0, len(packed), PART_BYTES)]
    assert len(parts) > 1
    assert answer["part_sizes"] == [len(part) for part in parts]
    assert answer["part_sha256"] == [hashlib.sha256(part).hexdigest() for part in parts]
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"Optimizer.step#SGD.step", True),
        (b"Optimizer.zero_grad#SGD.zero_grad", False),
        (b"my_Optimizer.step#", False),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1 << 20])
def test_an_optimizer_step_is_seen_wherever_the_chunks_end(
    kineto_trace: Callable[..., bytes], name: bytes, shown: bool, chunk_bytes: int
) -> None:
    check = TraceCheck()
    data = kineto_trace("cap-r0").replace(b"aten::op1", name)
    for start in range(0, len(data), chunk_bytes):
        check.feed(data[start : start + chunk_bytes])
    check.finish()
    assert check.optimizer_step is shown


@pytest.mark.parametrize("chunk_bytes", [1, 3, 4, 5, 1 << 20])
def test_events_are_counted_wherever_the_chunks_end(kineto_trace: Callable[..., bytes], chunk_bytes: int) -> None:
    data = kineto_trace("cap-r0", events=9)
    check = TraceCheck()
    for start in range(0, len(data), chunk_bytes):
        check.feed(data[start : start + chunk_bytes])
    assert check.events == sum("ph" in event for event in json.loads(data)["traceEvents"]) >= 9


TRUNCATED = "CorruptTrace"


@pytest.mark.parametrize(
    ("make", "failure"),
    [
        (lambda t: b"", "EmptyTrace"),
        (lambda t: t("cap-r0", events=0), "EmptyTrace"),
        (lambda t: t("cap-r0").replace(b'"X"', b'"M"'), "EmptyTrace"),
        # the window's end, as Kineto marks it in a process that is still importing PyTorch
        (
            lambda t: t("cap-r0", events=1).replace(b'"X"', b'"i"').replace(b"aten::op0", b"Record Window End"),
            "EmptyTrace",
        ),
        (lambda t: t("c").replace(b'"traceName"', b'"WARNING": ["No Valid Trace Events"], "traceName"'), "EmptyTrace"),
        (lambda t: t("cap-r0")[:-3], TRUNCATED),
        (lambda t: t("cap-r0", events=50)[:3000], TRUNCATED),
        (lambda t: t("cap-r0", events=50).rpartition(b"]")[0], TRUNCATED),
        (lambda t: t("cap-r0")[:60], TRUNCATED),
        (lambda t: b"\0" * 5 * MIB, TRUNCATED),
        (lambda t: b"not a trace", TRUNCATED),
        (lambda t: t("cap-r0").replace(b'"traceName"', b'"trace_id": "other", "traceName"'), "WrongTrace"),
    ],
)
def test_what_cannot_be_used_is_named_and_leaves_nothing(
    tmp_path: Path, kineto_trace: Callable[..., bytes], make: Callable[[Any], bytes], failure: str
) -> None:
    source, target = tmp_path / "in.json", tmp_path / "out.gz"
    source.write_bytes(make(kineto_trace))
    with source.open("rb") as file, pytest.raises(UnusableTrace) as refused:
        compress_file(file, target, max_trace_bytes=0, limit_bytes=64 * MIB)
    assert refused.value.reason == failure
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d,
        lambda d: d.replace(b'"host_name": "h"', b'"job": "a "quoted" name"'),  # Kineto does not escape
        lambda d: d.replace(b"aten::op1", b'op "with" quotes'),
        lambda d: d.replace(b"aten::op1", b"\xff\xfe\x00"),
        lambda d: d.replace(b'"trace_id": "cap-r0",', b"").replace(
            b'"traceName"', b'"trace_id": "cap-r0", "traceName"'
        ),
        lambda d: d.replace(b'"traceName"', b'"WARNING": ["buffer [0] was full}"], "traceName"'),
        lambda d: d + b"\n\n",
    ],
)
def test_a_trace_that_can_be_read_in_part_is_taken(
    tmp_path: Path, kineto_trace: Callable[..., bytes], change: Callable[[bytes], bytes]
) -> None:
    source = tmp_path / "in.json"
    source.write_bytes(change(kineto_trace("cap-r0")))
    with source.open("rb") as file:
        answer = compress_file(file, tmp_path / "out.gz", max_trace_bytes=0, limit_bytes=64 * MIB)
    assert answer["trace_id"] == "cap-r0"


@given(st.integers(1, 4000))
@settings(max_examples=40, deadline=None)
def test_the_verdict_does_not_depend_on_how_the_bytes_arrive(step: int) -> None:
    data = json.dumps({"trace_id": "a-r1", "traceEvents": [{"ph": "X", "n": "x" * 50}] * 40, "traceName": "t"}).encode()
    check = TraceCheck()
    for start in range(0, len(data), step):
        check.feed(data[start : start + step])
    assert check.finish() == "a-r1"


@given(st.binary(max_size=400))
def test_any_bytes_end_in_a_verdict(data: bytes) -> None:
    check = TraceCheck()
    check.feed(b'{"trace_id": "a", "traceEvents": [' + data)
    with pytest.raises(UnusableTrace):
        check.finish()


def test_memory_stays_bounded_on_one_huge_line(tmp_path: Path, kineto_trace: Callable[..., bytes]) -> None:
    source = tmp_path / "in.json"
    with source.open("wb") as file:
        head, tail = kineto_trace("cap-r0").split(b"aten::op1")
        file.write(head)
        for _ in range(200):
            file.write(b"x" * MIB)
        file.write(tail)
    # VmHWM and not ru_maxrss, which counts the parent's memory before exec as well.
    program = (
        "import sys; from pathlib import Path; from fleetprof_sidecar.children.compress import compress_file;"
        "compress_file(open(sys.argv[1], 'rb'), Path(sys.argv[2]), max_trace_bytes=0, limit_bytes=1 << 30);"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    command = [sys.executable, "-c", program, str(source), str(tmp_path / "out.gz")]
    result = subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert int(result.stdout) * 1024 < 64 * MIB


@pytest.mark.parametrize(
    ("more", "failure"),
    [(("--max-trace-bytes=100",), "TraceTooLarge"), (("--limit-bytes=50",), "SpoolFull")],
)
def test_limits_are_kept(
    tmp_path: Path, kineto_trace: Callable[..., bytes], more: tuple[str, ...], failure: str
) -> None:
    source = tmp_path / "in.json"
    source.write_bytes(kineto_trace("cap-r0"))
    assert run(source, tmp_path / "out.gz", *more)["failure"] == failure
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_a_full_disk_is_named(
    tmp_path: Path, kineto_trace: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    source = tmp_path / "in.json"
    source.write_bytes(kineto_trace("cap-r0"))

    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compress.PartedWriter, "write", no_space)
    monkeypatch.setattr(compress, "take_lowest_priority", lambda: None)
    monkeypatch.setattr(os, "dup", lambda _: os.open(source, os.O_RDONLY))
    monkeypatch.setattr(sys, "argv", ["compress", str(tmp_path / "out.gz"), "--limit-bytes=999999"])
    compress.main()
    assert json.loads(capsys.readouterr().out)["failure"] == "DiskFull"
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]
