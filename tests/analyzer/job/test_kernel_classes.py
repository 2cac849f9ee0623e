"""Classes of kernels of the user's own: patterns, files, requests, summaries made anywhere, and what a reader sees."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.capture.request_info import asked_kernel_classes, read_request
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_analyzer.rank.stored_summary import unpack_summary
from fleetprof_analyzer.trace.classes import WorkClass, classify_kernel
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api import keys
from fleetprof_api.kernel_class import KernelClass, contains, find_class, read_kernel_classes
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.request import InvalidRequest, load_kernel_classes
from harness.memory_store import MemoryStore
from harness.reports.page_text import page_text
from harness.traces.planted.traces import plant_capture
from hypothesis import given
from hypothesis import strategies as st

REDUCE = KernelClass(pattern="my_reduce", work_class="communication")
TILES = KernelClass(pattern="quantize_*_tiles", work_class="memory")


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("my_reduce", "void ns::my_reduce<4>(float*)", True),
        ("my_reduce", "void ns::My_Reduce<4>(float*)", False),  # as it is written
        ("quantize_*_tiles", "quantize_fp8_tiles", True),
        ("quantize_*_tiles", "quantize_tiles", False),
        ("quantize_*_tiles", "x_tiles_quantize_", False),  # one behind the other
        ("a*a", "a", False),
        ("*gemm*", "gemm", True),
        ("g.mm[0-9]+(", "gemm1(", False),  # nothing but the star is special
        ("g.mm[0-9]+(", "g.mm[0-9]+(", True),
        ("a*" * 100, "a" * 100, True),
        ("a*" * 99 + "b", "a" * 2000, False),
    ],
)
def test_a_pattern_is_text_with_stars(pattern: str, name: str, fits: bool) -> None:
    assert contains(name, pattern) == fits


@given(st.text("ab*.", max_size=6), st.text("ab.", max_size=10))
def test_patterns_are_what_a_regular_expression_would_be(pattern: str, name: str) -> None:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    assert contains(name, pattern) == (re.search(expression, name) is not None)


def test_the_first_that_fits_counts_and_goes_before_the_table() -> None:
    classes = [KernelClass(pattern="ncclDevKernel_Broadcast", work_class="memory"), REDUCE,
             KernelClass(pattern="reduce", work_class="compute")]  # fmt: skip
    assert find_class("my_reduce_kernel", classes) is REDUCE
    assert classify_kernel("ncclDevKernel_Broadcast_RING", classes) is WorkClass.MEMORY
    assert classify_kernel("ncclDevKernel_AllReduce_Sum", classes) is WorkClass.COMMUNICATION
    assert classify_kernel("cross_device_reduce_1stage", classes) is WorkClass.COMPUTE
    assert classify_kernel("gemm", classes) is WorkClass.COMPUTE


# ---------------------------------------------------------------- files


def test_a_file_holds_the_entries_of_a_request() -> None:
    text = "- {pattern: my_reduce, class: Communication}\n- {pattern: 'quantize_*_tiles', class: Memory}\n"
    assert load_kernel_classes(text) == (REDUCE, TILES)
    assert load_kernel_classes('[{"pattern": "my_reduce", "class": "Communication"}]') == (REDUCE,)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("- {pattern: a, class: Compute}\n- {pattern: b, class: Copy}",
         ["classes[1].class: must be Compute, Communication or Memory, got 'Copy'"]),
        ("- {pattern: '', class: Memory}\n- {patern: b, class: Memory}",
         ["classes[0].pattern: must be a text of 1 to 200 characters", "classes[1].pattern: is required",
          "classes[1].patern: is not a field here; did you mean pattern?"]),
        ("- {pattern: '**', class: Memory}", ["classes[0].pattern: must be a text"]),
        ("- {pattern: 7, class: Memory}", ["classes[0].pattern: must be a text"]),
        ("- my_reduce", ["classes[0]: must be a mapping with the fields pattern, class"]),
        ("pattern: my_reduce", ["classes: must be a list of at most 64 items"]),
        ("", ["classes: must be a list of at most 64 items"]),
        ("- {pattern: [", ["classes: is not YAML"]),
        ("- {pattern: a, class: Memory}\n" * 65, ["classes: must be a list of at most 64 items"]),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_each_entry_named(text: str, problems: list[str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        load_kernel_classes(text)
    assert len(refused.value.problems) == len(problems)
    for message, expected in zip(refused.value.problems, problems, strict=True):
        assert message.startswith(expected)


def test_entries_from_elsewhere_that_break_the_rules_are_left_out() -> None:
    entries = [("my_reduce", "communication"), ("", "memory"), ("x" * 201, "memory"), ("gemm", "copying")]
    assert read_kernel_classes(entries) == [REDUCE]
    assert len(read_kernel_classes([("a", "memory")] * 70)) == 64


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (None, []),
        (b"no json", []),
        (b"{}", []),
        (b'{"spec": {"analysis": null}}', []),
        (
            b'{"spec": {"analysis": {"kernelClasses": [{"pattern": "my_reduce", "class": "Communication"}, {}]}}}',
            [REDUCE],
        ),
        (b'{"spec": {"analysis": {"kernelClasses": "all"}}}', []),
    ],
)
def test_a_stored_request_says_its_classes(document: bytes | None, found: list[KernelClass]) -> None:
    assert asked_kernel_classes(read_request(document)) == found


# ---------------------------------------------------------------- reports


def kernel(name: str, start: int, end: int, category: str = "kernel") -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": 7}}  # fmt: skip


EVENTS = [kernel("gemm", 0, 10), kernel("my_reduce<4>", 10, 30), kernel("quantize_fp8_tiles", 30, 60),
          kernel("my_reduce copies", 60, 100, "gpu_memcpy")]  # fmt: skip


def microseconds(report: Report) -> list[int]:
    (total,) = report.totals
    time_ns = total.time_ns
    return [part // 1000 for part in (time_ns.compute, time_ns.exposed_communication, time_ns.exposed_memory)]


def test_classes_count_in_every_measure_and_a_copy_stays_a_copy(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": EVENTS}))
    assert microseconds(analyze_directory(tmp_path)) == [60, 0, 40]
    report = analyze_directory(tmp_path, kernel_classes=[REDUCE, TILES])
    assert microseconds(report) == [10, 20, 70]
    assert report.asked_kernel_classes == [REDUCE, TILES]
    assert [row.kind for row in report.communication] == ["reduce"]  # by its name
    assert "my_reduce is communication, quantize_*_tiles is memory" in render_text(report, 120)
    assert '["my_reduce is communication","quantize_*_tiles is memory"]' in page_text(report)


def ask(store: MemoryStore, uid: str, classes: list[dict[str, str]]) -> None:
    request = json.loads(store.get(keys.request_key("default", uid)))
    request["spec"]["analysis"] = {"kernelClasses": classes}
    store.put(keys.request_key("default", uid), json.dumps(request).encode())


def communicates(rank: Rank | None) -> int:
    assert rank is not None
    return rank.time_ns.exposed_communication + rank.time_ns.overlapped_communication


def test_a_requests_classes_reach_jobs_shards_and_the_trainers_side(tmp_path: Path) -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    plain = analyze_capture(store, "default", uid)
    assert min(communicates(rank) for rank in plain.ranks) > 0
    ask(store, uid, [{"pattern": "nccl", "class": "Compute"}])
    report = analyze_capture(store, "default", uid)
    assert [communicates(rank) for rank in report.ranks] == [0, 0]
    assert report.asked_kernel_classes == [KernelClass(pattern="nccl", work_class="compute")]
    assert report.stragglers is None  # no kernel communicates, so nobody waits
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    assert merge_capture(store, "default", uid).ranks == report.ranks

    (tmp_path / "t.json.gz").write_bytes(store.get(keys.trace_key("default", uid, 1)))
    command = [sys.executable, "-P", "-m", "fleetprof_sidecar.children.summarise", str(tmp_path / "t.json.gz")]
    command += ["--rank=1", f"--parent={os.getpid()}", f"--memory-bytes={1 << 30}", "--iterations=5"]
    for words, expected in (([], plain), (['--kernel-classes=[{"pattern":"nccl","work_class":"compute"}]'], report)):
        made = subprocess.run([*command, *words], capture_output=True, check=True).stdout
        assert gzip.decompress(made)
        assert communicates(unpack_summary(made, 1).rank) == communicates(expected.ranks[1])
