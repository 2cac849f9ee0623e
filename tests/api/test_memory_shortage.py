"""The process that the kernel ends first: a score that is only ever raised, by processes of ours about themselves."""

import subprocess
import sys
from pathlib import Path

import pytest
from fleetprof_api.memory_shortage import HELPER, SERVICE, go_first

ASKS = "print(open('/proc/self/oom_score_adj').read())"


@pytest.mark.parametrize(
    ("before", "score", "after"),
    [("0\n", SERVICE, "900"), ("-997\n", HELPER, "1000"), ("950\n", SERVICE, "950\n"), ("1000\n", HELPER, "1000\n")],
)
def test_a_score_is_raised_and_never_lowered(tmp_path: Path, before: str, score: int, after: str) -> None:
    file = tmp_path / "oom_score_adj"
    file.write_text(before)
    go_first(score, str(file))
    assert int(file.read_text()) == int(after)


def test_a_system_that_has_no_such_file_is_no_error(tmp_path: Path) -> None:
    go_first(HELPER, str(tmp_path / "missing"))
    (tmp_path / "odd").write_text("?")
    go_first(HELPER, str(tmp_path / "odd"))


@pytest.mark.parametrize(
    ("calls", "score"),
    [
        ("from fleetprof_sidecar.children.compress import take_lowest_priority; take_lowest_priority()", HELPER),
        ("from fleetprof_sidecar.children.summarise import take_lowest_priority; take_lowest_priority()", HELPER),
        ("from fleetprof_api.memory_shortage import go_first; go_first(900)", SERVICE),
    ],
)
def test_the_kernel_has_it(calls: str, score: int) -> None:
    result = subprocess.run([sys.executable, "-c", f"{calls}; {ASKS}"], capture_output=True, text=True, timeout=60)
    assert int(result.stdout) == score, result.stderr
