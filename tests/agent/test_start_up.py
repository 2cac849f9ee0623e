"""The agent's way into an interpreter, without PyTorch: PYTHONPATH, others' sitecustomize, the import hook."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.training.agent_ground import AgentGround
from harness.training.fake_torch import FAKE_TORCH, put

HOOKS = "import torch.optim.optimizer as o; print([h.__name__ for h in o._global_optimizer_post_hooks.values()])"


def run(
    ground: AgentGround, code: str, *options: str, path: tuple[str, ...] = (), **more: str
) -> "subprocess.CompletedProcess[str]":
    """Runs `python -c code` in a trainer's environment, `path` behind the agent on PYTHONPATH."""
    # The agent's folder is named even where the agent is turned off: its own checks are what is tested.
    environment = ground.environment(**more) | {"PYTHONPATH": os.pathsep.join([ground.directory + "/agent", *path])}
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ground.scratch,
    )


def test_hook_is_registered_right_after_that_of_kineto(ground: AgentGround) -> None:
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    result = run(ground, "import torch; " + HOOKS, path=(torch,))
    assert (result.returncode, result.stdout, result.stderr) == (0, "['kineto_hook', 'record_step']\n", "")


def test_import_leaves_no_trace_in_the_import_system(ground: AgentGround) -> None:
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    code = """
import sys, torch.profiler, inspect
loader = torch.profiler.__loader__
print(type(loader).__name__, loader is torch.profiler.__spec__.loader, sorted(vars(loader)))
print("kineto_hook" in inspect.getsource(torch.profiler))
print([type(finder).__module__ for finder in sys.meta_path if "fleetprof" in type(finder).__module__])
"""
    assert run(ground, code, path=(torch,)).stdout == "SourceFileLoader True ['name', 'path']\nTrue\n[]\n"


def test_pytorch_that_was_imported_by_another_sitecustomize_is_found(ground: AgentGround) -> None:
    torch = put(ground.scratch / "fake", {**FAKE_TORCH, "sitecustomize.py": "import torch\n"})
    assert run(ground, HOOKS, path=(torch,)).stdout == "['kineto_hook', 'record_step']\n"


def test_pytorch_that_is_there_before_us_is_found(ground: AgentGround) -> None:
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    code = f"import sys; sys.path[:0] = {[torch, ground.directory + '/agent']!r}; import torch, sitecustomize; {HOOKS}"
    assert run(ground, code, "-S", path=(torch,)).stdout == "['kineto_hook', 'record_step']\n"


@pytest.mark.parametrize(
    ("version", "is_spared"),
    [
        ("2.1.0+cu121", True),
        ("2.7.1", True),
        ("2.9.0a0+145a3a7bda.nv25.10", True),
        ("2.10.0", False),
        ("2.13.0+cpu", False),
        ("3.0.0", False),
        ("master", False),
    ],
)
def test_pytorch_that_kinetos_daemon_mode_could_crash_runs_without_it(
    ground: AgentGround, version: str, is_spared: bool
) -> None:
    """Before it loads: libkineto reads the variable when torch is imported, and so do the processes that it starts."""
    text = f"__all__ = ['__version__']\n__version__ = '{version}'\ndebug = False\n"
    look = "import os, subprocess; seen = os.environ.get('KINETO_USE_DAEMON')\n"
    files = {**FAKE_TORCH, "torch/version.py": text, "torch/__init__.py": look + FAKE_TORCH["torch/__init__.py"]}
    torch = put(ground.scratch / "fake", files)
    code = "import torch, subprocess; print(torch.seen); subprocess.run(['printenv', 'KINETO_USE_DAEMON'])\n" + HOOKS
    result = run(ground, code, "-u", path=(torch,))
    assert result.stderr == ""
    assert result.stdout.splitlines() == (
        ["None", "['kineto_hook']"] if is_spared else ["1", "1", "['kineto_hook', 'record_step']"]
    )


def test_import_error_of_pytorch_is_its_own(ground: AgentGround) -> None:
    torch = put(ground.scratch / "fake", {**FAKE_TORCH, "torch/profiler.py": "raise OSError('libcudart')\n"})
    result = run(ground, "import torch", path=(torch,))
    assert result.returncode == 1
    assert result.stderr.endswith("OSError: libcudart\n")


def test_finders_of_others_are_asked_in_their_order(ground: AgentGround) -> None:
    """A finder behind ours that answers for torch.profiler keeps its say, with its own loader."""
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    code = """
import sys, importlib.abc, importlib.machinery
class Loader(importlib.abc.Loader):
    def create_module(self, spec): return None
    def exec_module(self, module): module.origin = "theirs"
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch.profiler":
            return importlib.machinery.ModuleSpec(name, Loader())
sys.meta_path.insert(1, Finder())
import torch
print(torch.profiler.origin)
"""
    result = run(ground, code + HOOKS, path=(torch,))
    assert result.stdout == "theirs\n['record_step']\n"


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (("-I",), {}),
        (("-S",), {}),
        (("-E",), {}),
        ((), {"FLEETPROF_AGENT": "0"}),
        ((), {"KINETO_USE_DAEMON": ""}),
        ((), {"KINETO_IPC_SOCKET_DIR": ""}),
    ],
    ids=["-I", "-S", "-E", "FLEETPROF_AGENT=0", "no daemon mode", "no directory"],
)
def test_agent_is_absent(ground: AgentGround, options: tuple[str, ...], more: dict[str, str]) -> None:
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    code = f"import sys; sys.path.insert(0, {torch!r}); print('fleetprof_agent' in sys.modules); import torch; {HOOKS}"
    result = run(ground, code, *options, path=(torch,), **more)
    assert (result.stdout, result.stderr) == ("False\n['kineto_hook']\n", "")


def test_interpreter_without_pytorch_is_left_alone(ground: AgentGround) -> None:
    code = """
import sys
try:
    import torch
except ModuleNotFoundError as error:
    print(error.name, error)
print(sorted(name for name in sys.modules if "fleetprof" in name))
"""
    result = run(
        ground, code, "-c", f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]\n{code}"
    )
    assert result.stdout == "torch No module named 'torch'\n[]\n"
    assert result.stderr == ""


def test_start_imports_nothing_but_itself(ground: AgentGround) -> None:
    code = "import sys; print(*sorted(sys.modules))"
    with_agent = set(run(ground, code).stdout.split())
    without = set(run(ground, code, FLEETPROF_AGENT="0").stdout.split())
    assert with_agent == without
    assert without >= {"sitecustomize"}


def test_running_another_sitecustomize_imports_nothing_more_than_it_does(ground: AgentGround) -> None:
    theirs = put(ground.scratch / "theirs", {"sitecustomize.py": "import sys; sys.theirs = 1\n"})
    code = "import sys; print(sys.theirs, *sorted(sys.modules))"
    environment = ground.environment() | {"PYTHONPATH": theirs}
    bare = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert bare.stdout.startswith("1 ")
    assert run(ground, code, path=(theirs,)).stdout == bare.stdout


def test_other_sitecustomize_runs_as_if_it_were_the_only_one(ground: AgentGround) -> None:
    text = "print('theirs', __name__, __file__)\nvalue = 7\n"
    other = put(ground.scratch / "other", {"sitecustomize.py": text})
    result = run(ground, "import sitecustomize; print(sitecustomize.value, sitecustomize.__file__)", path=(other,))
    assert result.stdout == f"theirs sitecustomize {other}/sitecustomize.py\n7 {other}/sitecustomize.py\n"


@pytest.mark.parametrize(
    "text", ["raise ValueError('of theirs')\n", "import missing_module\n", "raise SystemExit(4)\n"]
)
def test_errors_of_another_sitecustomize_are_reported_as_python_does(ground: AgentGround, text: str) -> None:
    other = put(ground.scratch / "other", {"sitecustomize.py": text})
    code = "import sys; print('sitecustomize' in sys.modules)"
    chained = run(ground, code, path=(other,))
    alone = run(ground, code, path=(other,), FLEETPROF_AGENT="0")
    bare = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": other}, capture_output=True, text=True, timeout=60
    )
    assert (chained.returncode, chained.stdout) == (alone.returncode, alone.stdout) == (bare.returncode, bare.stdout)
    assert chained.stderr.splitlines()[-2:] == bare.stderr.splitlines()[-2:]


def test_two_that_chain_do_not_chase_each_other(ground: AgentGround) -> None:
    """One that looks from the top of sys.path again finds ours, and ours finds it: each runs once more at most."""
    text = """
import sys
print("theirs")
own = sys.modules.pop("sitecustomize")
import sitecustomize
"""
    other = put(ground.scratch / "other", {"sitecustomize.py": text})
    result = run(ground, "print('job')", path=(other,))
    assert (result.stdout, result.stderr, result.returncode) == ("theirs\njob\n", "", 0)
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    result = run(ground, "import torch; " + HOOKS, path=(other, torch))
    assert (result.stdout, result.stderr) == ("theirs\n['kineto_hook', 'record_step']\n", "")


def test_broken_agent_is_silent_unless_asked(ground: AgentGround) -> None:
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    (Path(ground.directory) / "agent/fleetprof_agent/agent.py").write_text("raise RuntimeError('broken')\n")
    assert run(ground, "import torch", path=(torch,)).stderr == ""
    assert "RuntimeError: broken" in run(ground, "import torch", path=(torch,), FLEETPROF_AGENT_DEBUG="1").stderr


def test_a_boot_file_without_its_agent_leaves_pytorch_alone(ground: AgentGround, tmp_path: Path) -> None:
    source = (Path(ground.directory) / "agent/sitecustomize.py").read_text()
    boot = put(tmp_path / "boot", {"sitecustomize.py": source})
    torch = put(ground.scratch / "fake", FAKE_TORCH)
    environment = ground.environment(FLEETPROF_AGENT_DEBUG="1") | {"PYTHONPATH": f"{boot}:{torch}"}
    result = subprocess.run(
        [sys.executable, "-c", "import torch; " + HOOKS], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.stderr) == ("['kineto_hook']\n", "")


def test_pytorch_that_has_changed_is_left_alone(ground: AgentGround) -> None:
    """A PyTorch without the hook or the step tracker that we know: it is imported as if we were not there."""
    torch = put(ground.scratch / "fake", {**FAKE_TORCH, "torch/autograd/profiler.py": ""})
    result = run(ground, "import torch; " + HOOKS, path=(torch,))
    assert (result.stdout, result.stderr) == ("['kineto_hook']\n", "")


def test_the_jobs_own_nvml_library_is_not_replaced(ground: AgentGround, tmp_path: Path) -> None:
    own = put(tmp_path / "own", {"pynvml.py": "whose = 'the job'"})
    code = (
        "import pynvml, fleetprof_agent.samples.nvml as n; ours = n.load_pynvml();"
        "print(pynvml.whose, ours.__name__, ours.__file__, hasattr(ours, 'nvmlInit'))"
    )
    result = run(ground, code, path=(own,))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == [
        *("the", "job", "fleetprof_agent.pynvml"),
        f"{ground.directory}/agent/fleetprof_agent/pynvml.py",
        "True",
    ]
