"""The extra `kubectl` leaves out what reads the object store: commands that need it say what to install."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
for name in ("numpy", "isal", "grpc", "kopf", "boto3", "jinja2"):
    sys.modules[name] = None  # as if it were not installed
sys.argv = ["kubectl-fleetprof", *sys.argv[1:]]
from fleetprof_cli.{module} import main
main()
"""


def run_without_packages(*words: str, module: str = "kubectl") -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.replace("{module}", module)
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)


@pytest.mark.parametrize("command", ["report", "traces", "diff"])
def test_a_command_names_the_extra_that_it_needs(command: str) -> None:
    result = run_without_packages(command, "--help")
    assert result.returncode == 1
    assert f"{command} needs the package" in result.stderr
    assert "pip install 'fleetprof[kubectl,analyzer]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_commands_of_local_mode_name_an_extra_of_their_own() -> None:
    assert run_without_packages("--help", module="main").returncode == 0
    result = run_without_packages("list", module="main")
    assert (result.returncode, result.stderr) == (
        1,
        "fleetprof: list needs the package grpc, which is not installed\n"
        "fleetprof:   install what all commands need: pip install 'fleetprof[cli]'\n",
    )


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
