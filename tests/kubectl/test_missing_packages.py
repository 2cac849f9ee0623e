"""The extra `kubectl` leaves out what reads the object store: commands that need it say what to install."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.xdist_group("without packages")  # in one worker, which imports all once

Run = Callable[..., "subprocess.CompletedProcess[str]"]

WITHOUT = """
import sys
for name in ("numpy", "isal", "grpc", "kopf", "boto3", "jinja2"):
    sys.modules[name] = None  # as if it were not installed
"""
# What all commands import costs most, so each is forked from a process that has done so.
COMMANDS = """
import json, os, tempfile
import fleetprof_api.request, fleetprof_cli.kubernetes.connection
from fleetprof_cli.kubectl import main

def start(words):
    out, error = (tempfile.TemporaryFile() for _ in "12")
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [file.seek(0) or file.read().decode() for file in (out, error)]
        print(json.dumps([code, *texts]), flush=True)
        return
    os.dup2(out.fileno(), 1)
    os.dup2(error.fileno(), 2)
    sys.argv = ["kubectl-fleetprof", *words]
    main()
    sys.exit()

for line in sys.stdin:
    start(json.loads(line))
"""
LOCAL_COMMAND = """
sys.argv = ["fleetprof", *sys.argv[1:]]
from fleetprof_cli.main import main
main()
"""
NEED_MORE = ["report", "traces", "diff"]
NEED_NO_MORE = [
    ["--help"],
    ["capture", "job/llama", "--iterations", "5", "--dry-run=client", "-o", "yaml"],
    *([name, "--help"] for name in ("wait", "list", "cancel", "inject", "doctor", "completion")),
]


def run_program(program: str, *words: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, input=given)


@pytest.fixture(scope="module")
def plug_in() -> Run:
    """Runs `kubectl fleetprof` without the packages; each line of words is a process of its own."""
    lines = [*([name, "--help"] for name in NEED_MORE), *NEED_NO_MORE]
    result = run_program(WITHOUT + COMMANDS, given="".join(f"{json.dumps(words)}\n" for words in lines))
    assert (result.returncode, result.stderr) == (0, "")
    ends = [
        subprocess.CompletedProcess(words, *json.loads(end))
        for words, end in zip(lines, result.stdout.splitlines(), strict=True)
    ]
    return lambda *words: ends[lines.index(list(words))]


@pytest.mark.parametrize("command", NEED_MORE)
def test_a_command_names_the_extra_that_it_needs(plug_in: Run, command: str) -> None:
    result = plug_in(command, "--help")
    assert result.returncode == 1
    assert f"{command} needs the package" in result.stderr
    assert "pip install 'fleetprof[kubectl,analyzer]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_commands_of_local_mode_name_an_extra_of_their_own() -> None:
    assert run_program(WITHOUT + LOCAL_COMMAND, "--help").returncode == 0
    result = run_program(WITHOUT + LOCAL_COMMAND, "list")
    assert (result.returncode, result.stderr) == (
        1,
        "fleetprof: list needs the package grpc, which is not installed\n"
        "fleetprof:   install what all commands need: pip install 'fleetprof[cli]'\n",
    )


@pytest.mark.parametrize("words", NEED_NO_MORE, ids=lambda words: words[0])
def test_all_others_work_without(plug_in: Run, words: list[str]) -> None:
    result = plug_in(*words)
    assert (result.returncode, result.stderr) == (0, "")
