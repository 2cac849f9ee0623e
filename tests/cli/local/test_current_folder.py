"""Nothing of ours runs code of the folder in which a command is called; a job of the user keeps its own path."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fleetprof_cli.local.state import StateDirectory
from harness.repository import ROOT, source_files
from harness.waiting import wait_until

Finished = subprocess.CompletedProcess[str]
SIMULATION = Path(__file__).parents[2] / "simulation" / "trainer.py"
PROGRAMS = Path(sysconfig.get_path("scripts"))
# All that a Python could look for, but what is in the interpreter itself.
NAMES = {*sys.stdlib_module_names, "sitecustomize", "usercustomize", "numpy", "msgspec", "grpc", "click", "isal"}
PLANTED = (
    "import os\nopen(os.environ['PROOF'], 'a').write(__name__ + ' ' + open('/proc/self/cmdline').read() + '\\n')\n"
)
# Text that takes long enough to read for several processes to share the work.
TRACE = (
    '{"distributedInfo":{"rank":%d,"world_size":2},"traceEvents":[%s'
    '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":5}]}'
)


class Planted:
    """A folder with a module of each name, and what they have run in."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder / "planted"
        self.folder.mkdir()
        self._proof = folder / "proof"
        self._environment = environment | {"PROOF": str(self._proof)}
        for name in NAMES - set(sys.builtin_module_names):
            (self.folder / f"{name}.py").write_text(PLANTED)

    def run(self, *words: str | Path, **more: str) -> Finished:
        """Runs one of our programs, or another, in the folder."""
        program = str(PROGRAMS / words[0]) if (PROGRAMS / words[0]).exists() else words[0]
        return subprocess.run(
            [program, *words[1:]],
            cwd=self.folder,
            env=self._environment | more,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    @contextmanager
    def start(self, log: Path, *words: str) -> Iterator[None]:
        """Has `fleetprof` run in the folder meanwhile."""
        with log.open("w") as out:
            command = [str(PROGRAMS / "fleetprof"), *words]
            process = subprocess.Popen(command, cwd=self.folder, env=self._environment, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)

    def proof(self) -> str:
        """The modules of it that ran, each with its process."""
        return self._proof.read_text().replace("\0", " ") if self._proof.exists() else ""


@pytest.fixture
def planted(tmp_path: Path, environment: dict[str, str]) -> Planted:
    return Planted(tmp_path, environment)


@pytest.mark.attack
def test_a_folder_of_traces_brings_no_code(planted: Planted) -> None:
    for rank in range(2):
        (planted.folder / f"rank{rank}.json").write_text(TRACE % (rank, " " * (40 << 20)))
    finished = planted.run("fleetprof", "analyze", ".", "--jobs", "2", "-o", "json")
    assert planted.proof() == ""
    assert len(json.loads(finished.stdout)["ranks"]) == 2


@pytest.mark.attack
@pytest.mark.parametrize("path", [None, "", ":", ".", "elsewhere:."], ids=["none", "empty", "colon", "dot", "relative"])
def test_a_child_takes_none_whatever_is_on_pythonpath(planted: Planted, path: str | None) -> None:
    # With such a PYTHONPATH the parent would look into the folder itself, as the user asks; a child of ours does not.
    program = (
        f"import os, subprocess\nos.environ.update({ ({} if path is None else {'PYTHONPATH': path})!r})\n"
        "from fleetprof_cli.local.child import child_command\n"
        "from fleetprof_api.process.import_path import own_environment\n"
        "command = child_command('fleetprof_analyzer.capture.main', '--help')\n"
        "print(subprocess.run(command, env=own_environment(), stdout=subprocess.DEVNULL).returncode)\n"
    )
    finished = planted.run(sys.executable, "-I", "-c", program)
    assert (finished.stdout, planted.proof()) == ("0\n", ""), finished.stderr


@pytest.mark.attack
def test_nor_do_up_and_run_and_a_capture_with_its_analysis(
    planted: Planted, state: StateDirectory, tmp_path: Path
) -> None:
    with planted.start(tmp_path / "up.log", "up"):
        wait_until(state.hub, "the hub")
        trainers = (
            f'exec "{sys.executable}" "{SIMULATION}" --directory "$KINETO_IPC_SOCKET_DIR" --ranks 1 --poll-ms 300'
        )
        with planted.start(tmp_path / "job.log", "run", "--name", "sim", "--", "bash", "-c", trainers):
            wait_until(lambda: '"step": ' in planted.run("fleetprof", "list", "-o", "json").stdout, "the rank")
            finished = planted.run("fleetprof", "capture", "--iterations", "3", "--canary", "never")
        wait_until(lambda: "the web UI" in (tmp_path / "up.log").read_text(), "the web UI")
    assert planted.proof() == ""
    assert finished.returncode == 0, finished.stderr


@pytest.mark.attack
@pytest.mark.parametrize(
    "words",
    [("doctor",), ("demo", "--python", sys.executable), ("list",), ("--help",), ("run", "--", "true")],
)
def test_nor_do_other_commands(planted: Planted, words: tuple[str, ...]) -> None:
    planted.run("fleetprof", *words)
    assert planted.proof() == ""


def test_a_job_keeps_its_path(fleetprof: Callable[..., Finished], environment: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "show.py"
    program.write_text("import json, sys\nprint(json.dumps([sys.path, sys.flags.safe_path]))\n")
    for path in (None, "", ":", ".", "relative:/absolute"):
        given = environment | ({} if path is None else {"PYTHONPATH": path})
        for launch in ((sys.executable, str(program)), (sys.executable, "-c", program.read_text())):
            alone = subprocess.run(launch, env=given, cwd=tmp_path, capture_output=True, check=True).stdout
            entries, safe = json.loads(fleetprof("run", "--no-hub", "--", *launch, env=given, cwd=tmp_path).stdout)
            assert [[entry for entry in entries if not entry.endswith("/agent")], safe] == json.loads(alone)


def test_every_python_that_we_start_is_started_so() -> None:
    """The interpreter is named by `import_path`, and by those who look for the one that trains."""
    rooms = ("api/", "operator/", "sidecar/", "analyzer/", "webui/fleetprof_webui/", "cli/", "notebook/")
    named = {
        path
        for path in source_files()
        if path.startswith(rooms) and "/fleetprof" in path and "sys.executable" in (ROOT / path).read_text()
    }
    assert named == {
        "api/fleetprof_api/process/import_path.py",
        "cli/fleetprof_cli/commands/local/demo.py",
        "cli/fleetprof_cli/doctor/interpreter.py",
        "cli/fleetprof_cli/kubernetes/doctor/observation.py",
    }
