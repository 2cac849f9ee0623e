"""Beside Meta's HTA: equal where its definitions hold, and each difference is one of its documented traps.

HTA's interpreter comes from `.ci/hta`; tests are skipped where it was not made (FLEETPROF_REQUIRE=hta makes it a
failure).
"""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_api.report.report import Rank, Report
from harness.traces.kept_traces import COMMITTED, SHARED, find

ROOT = Path(__file__).parents[3]
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"


# HTA is asked once about all traces: to start it takes longer than most answers.
pytestmark = pytest.mark.xdist_group("hta")


@pytest.fixture(scope="module")
def hta() -> Path:
    found = sorted(HOME.glob("hta-*/complete"))
    if not found:
        if "hta" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail("HTA is not there: run .ci/hta")
        pytest.skip("HTA is not there: run .ci/hta")
    return found[-1].parent / "bin/python"


# One step or none: with more, HTA drops the last step (trap 11), and with it work that we count.
WHOLE = [
    "gpu_one_step/rank0.json.gz",
    "dlrm_v100_8ranks/worker0_step_12.1694128201545.pt.trace.json.gz",
    "dlrm_v100_8ranks/worker7_step_12.1694128201553.pt.trace.json.gz",
    "inference_h100_mi300/mi300_falconsai.json.gz",
]
# (file, iterations, the share of the device's time that HTA sees of it)
STEPS = [("gpu_loop/rank0.json.gz", 5, 0.82), ("nccl_a100/nccl_data.json.gz", 3, 0.7)]
# (compute, exposed communication, idle) of ours; (compute, non_compute, idle) of HTA's, None: it fails.
TRAPS: dict[str, tuple[tuple[int | None, ...], tuple[int | None, ...] | None]] = {
    "sub_us": ((900, 0, None), (0, None, None)),  # 1: rounding to µs loses short kernels
    "cuda_sync": ((20, 0, 70), (None, 70, 0)),  # 5: waiting rows count as work
    "comm_names": ((None, 90, None), (None, None, None)),  # 9: most communication kernels pass for compute
    "listfmt": ((20, 0, 70), None),  # 13: a bare list cannot be read
    "trunc": ((20, 0, 70), None),  # 13: one cut file ends the analysis of all
    "nan_lower": ((20, 0, 70), None),  # 13: one nan ends the analysis of all
}


class HtaReadings:
    """Traces, by the name of their folder, and what HTA says of each."""

    def __init__(self, hta: Path, folders: dict[str, Path], *, nanoseconds: bool) -> None:
        self.folders = folders
        environment = os.environ | ({"HTA_DISABLE_NS_ROUNDING": "1"} if nanoseconds else {})
        command = [hta, ROOT / "bench/analyzer/peer.py", *folders.values()]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(answers) == len(folders), result.stderr[-2000:]
        self.answers: dict[str, dict[str, Any]] = dict(zip(folders, answers, strict=True))

    def both(self, name: str) -> tuple[dict[str, Any], Report, Rank]:
        """HTA's answer, our report and its first rank."""
        answer = self.answers[name]
        assert "error" not in answer, answer["error"]
        report = analyze_directory(self.folders[name])
        return answer, report, report.ranks[0]


@pytest.fixture(scope="module")
def exact(hta: Path, tmp_path_factory: pytest.TempPathFactory) -> HtaReadings:
    """All of WHOLE and STEPS that are here, in nanoseconds."""
    folders = {}
    for name in [*WHOLE, *(name for name, _, _ in STEPS)]:
        if (file := next((place / name for place in (COMMITTED, SHARED) if (place / name).exists()), None)) is not None:
            folders[name] = tmp_path_factory.mktemp("whole")
            shutil.copy(file, folders[name] / "rank0.json.gz")
    return HtaReadings(hta, folders, nanoseconds=True)


@pytest.fixture(scope="module")
def rounded(hta: Path, traps: Path, tmp_path_factory: pytest.TempPathFactory) -> HtaReadings:
    """All of TRAPS, in microseconds."""
    folders = {}
    for name in TRAPS:
        folders[name] = tmp_path_factory.mktemp(name)
        for number, file in enumerate(sorted(path for path in (traps / name).iterdir() if ".json" in path.name)):
            data = file.read_bytes()
            compressed = data if data[:2] == b"\x1f\x8b" else gzip.compress(data)
            (folders[name] / f"rank{number}.json.gz").write_bytes(compressed)
    return HtaReadings(hta, folders, nanoseconds=False)


@pytest.mark.parametrize("file", WHOLE)
def test_times_are_htas_where_it_reads_the_whole_trace(exact: HtaReadings, file: str) -> None:
    find(file)
    answer, report, rank = exact.both(file)
    (theirs,) = answer["time"]
    ours = rank.time_ns
    assert theirs["kernel_time(us)"] == pytest.approx(ours.span / 1000, abs=1)
    assert theirs["idle_time(us)"] == pytest.approx(ours.idle / 1000, abs=1)
    assert theirs["compute_time(us)"] == pytest.approx(ours.compute / 1000, abs=1)
    # HTA's non_compute holds what we tell apart: exposed communication and exposed memory.
    exposed = ours.exposed_communication + ours.exposed_memory
    assert theirs["non_compute_time(us)"] == pytest.approx(exposed / 1000, abs=1)
    communication = ours.overlapped_communication + ours.exposed_communication
    if communication:
        (overlap,) = answer["overlap"]
        assert overlap["comp_comm_overlap_pctg"] == pytest.approx(
            100 * ours.overlapped_communication / communication, abs=0.011
        )
    sums = {row["name"]: row["sum (us)"] for row in answer["kernels"] if row["kernel_type"] != "MEMORY"}
    for kernel in report.kernels:
        if kernel.name in sums:
            assert sums[kernel.name] == pytest.approx(kernel.total_ns / 1000, abs=1), kernel.name


@pytest.mark.parametrize("file", WHOLE[:3])
def test_the_categories_of_each_stream_are_htas(exact: HtaReadings, file: str) -> None:
    find(file)
    answer, _, rank = exact.both(file)
    (device,) = rank.devices
    assert device.stream_idle_ns is not None
    theirs = {"host_wait": 0.0, "kernel_wait": 0.0, "other": 0.0}
    for row in answer["idle"]:
        theirs[row["idle_category"]] += row["idle_time"]
    # Streams whose rows overlap have negative gaps there (trap 7): none in these traces.
    for category, microseconds in theirs.items():
        assert getattr(device.stream_idle_ns, category) / 1000 == pytest.approx(microseconds, abs=1), category


@pytest.mark.parametrize("trap", TRAPS)
def test_each_difference_is_one_of_htas_documented_traps(rounded: HtaReadings, trap: str) -> None:
    ours_us, theirs_us = TRAPS[trap]
    time_ns = analyze_directory(rounded.folders[trap]).ranks[0].time_ns
    found = (time_ns.compute, time_ns.exposed_communication, time_ns.idle)
    for ours, expected in zip(found, ours_us, strict=True):
        assert expected is None or ours == expected * 1000
    if theirs_us is None:
        assert rounded.answers[trap].keys() == {"error"}
        return
    answer = rounded.answers[trap]["time"][0]
    names = ("compute_time(us)", "non_compute_time(us)", "idle_time(us)")
    for name, theirs in zip(names, theirs_us, strict=True):
        assert theirs is None or answer[name] == theirs
    if trap == "comm_names":
        assert answer["compute_time(us)"] > 0


@pytest.mark.parametrize(("file", "steps", "most"), STEPS)
def test_trap_11_the_last_step_is_dropped(exact: HtaReadings, file: str, steps: int, most: float) -> None:
    find(file)
    answer, _, rank = exact.both(file)
    (theirs,) = answer["time"]
    # The time of work is that of all steps but the last, to a step's edge.
    assert theirs["kernel_time(us)"] < most * rank.time_ns.span / 1000
    assert len(rank.iterations) == steps
