"""The extra `kubectl` leaves out what reads the object store: commands that need it say what to install."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
for name in ("numpy", "isal", "grpc", "kopf", "boto3", "jinja2"):
    sys.modules[name] = None  # as if it were not installed
sys.argv = ["kubectl-fleetprof", *sys.argv[1:]]
from fleetprof_cli.kubectl import main
main()
"""


def run_without_packages(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True)


@pytest.mark.parametrize("command", ["report", "traces", "diff"])
def test_a_command_names_the_extra_that_it_needs(command: str) -> None:
    result = run_without_packages(command, "--help")
    assert result.returncode == 1
    assert f"{command} needs the package" in result.stderr
    assert "pip install 'fleetprof[kubectl,analyzer]'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["capture", "job/llama", "--iterations", "5", "--dry-run=client", "-o", "yaml"],
        *([name, "--help"] for name in ("wait", "list", "cancel", "inject", "doctor", "completion")),
    ],
    ids=lambda words: words[0],
)
def test_all_others_work_without(words: list[str]) -> None:
    result = run_without_packages(*words)
    assert (result.returncode, result.stderr) == (0, "")
