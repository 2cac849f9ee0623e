"""The interpreter that trains: which it is, and whether a job of it can be captured.

Guarantees: an interpreter that says nothing is a finding, not an error.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from fleetprof_api.hub.oldest_torch import TOO_OLD_ADVICE, is_too_old, read_release
from fleetprof_api.process.import_path import FORGET_THE_FOLDER, own_environment

from fleetprof_cli.doctor.check import NO_AGENT, Check, Verdict

_PROBE_S: Final = 120
# `torch.profiler.kineto_available` is what says whether this build can trace at all.
_PROBE: Final = """
import json, sys
facts = {"python": "%d.%d.%d" % sys.version_info[:3], "isolated": bool(sys.flags.ignore_environment)}
try:
    import importlib.util
    facts["sitecustomize"] = getattr(importlib.util.find_spec("sitecustomize"), "origin", None)
    import torch
    facts["torch"] = torch.__version__
    facts["kineto"] = bool(torch.profiler.kineto_available())
    facts["devices"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
except ImportError as error:
    facts["error"] = str(error)
print("\\n" + json.dumps(facts))
"""


_ACTIVE: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
# What is installed, without the seconds that its import takes.
_FIND: Final = """
import json, sys
facts = {"python": "%d.%d.%d" % sys.version_info[:3]}
try:
    import importlib.metadata, importlib.util
    if importlib.util.find_spec("torch") is None:
        raise ImportError("No module named 'torch'")
    facts["torch"] = importlib.metadata.version("torch")
except ImportError as error:
    facts["error"] = str(error)
print("\\n" + json.dumps(facts))
"""


def probe_interpreter(python: str, program: str = _PROBE) -> dict[str, Any]:
    """The interpreter's word on itself; `error` when it says nothing."""
    try:
        result = subprocess.run(
            [python, "-c", FORGET_THE_FOLDER + program],
            env=own_environment(),
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            check=False,
        )
        facts: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    except FileNotFoundError:
        return {"error": "there is no such program", "missing": True}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error), "missing": True}
    except (IndexError, ValueError):
        return {"error": f"it ended with code {result.returncode}", "missing": True}
    return facts


def find_torch(python: str) -> dict[str, Any]:
    """Its `python` and the version of its `torch`, which is not imported; `error` where it has none."""
    return probe_interpreter(python, _FIND)


def judge_interpreter(python: str, facts: Mapping[str, Any]) -> Iterable[Check]:
    """Python and PyTorch of the interpreter that trains. Source of the versions: docs/limits.md."""
    other = "name the interpreter that trains: fleetprof doctor --python PATH"
    if facts.get("missing"):
        yield Check("interpreter", Verdict.FAIL, f"{python}: {facts['error']}", other)
        return
    version = facts["python"]
    agent_runs = read_release(version) >= (3, 9)
    yield Check(
        "interpreter",
        Verdict.OK if agent_runs and not facts["isolated"] else Verdict.WARN,
        f"{python}: Python {version}",
        f"the agent needs Python 3.9 or later; {NO_AGENT}"
        if not agent_runs
        else f"it ignores PYTHONPATH, so the agent stays out; {NO_AGENT}"
        if facts["isolated"]
        else "",
    )
    if "torch" not in facts:
        yield Check("pytorch", Verdict.FAIL, f"not importable: {facts.get('error', '')}", other)
        return
    yield judge_torch(facts["torch"], facts["kineto"], facts["devices"])
    if facts.get("sitecustomize"):
        yield Check("sitecustomize", Verdict.OK, f"{facts['sitecustomize']} exists; the agent calls it first")


def judge_torch(version: str, kineto: bool, devices: int | None = None) -> Check:
    """Tells if this PyTorch can be captured through Kineto's daemon protocol; None when its devices are not known."""
    found = f"{version}, {devices} CUDA devices" if devices else f"{version}, no CUDA device: operators only"
    found = version if devices is None else found
    if not kineto:
        return Check("pytorch", Verdict.FAIL, f"{found}; built without Kineto", "use an official build of PyTorch")
    if is_too_old(version):
        advice = (
            f"too old: {TOO_OLD_ADVICE}; before it captures are off, as Kineto may crash at start-up (pytorch#163545)"
        )
        return Check("pytorch", Verdict.FAIL, found, advice)
    return Check("pytorch", Verdict.OK, found)


def find_interpreters(environment: Mapping[str, str]) -> list[str]:
    """Interpreters that may train, the likeliest first: of the active environment, fleetprof's own, and python on PATH.

    Who calls .venv/bin/fleetprof without activating the environment trains there, and not with the python of PATH.
    """
    active = [Path(environment[name], "bin", "python") for name in _ACTIVE if environment.get(name)]
    on_path = shutil.which("python") or shutil.which("python3")
    found = [*(str(python) for python in active if os.access(python, os.X_OK)), sys.executable, on_path or ""]
    folders: dict[Path, str] = {}
    for python in found:
        if python:
            folders.setdefault(Path(python).parent, python)
    return list(folders.values())


def choose_interpreter(versions: Mapping[str, str]) -> str:
    """The first interpreter that has PyTorch, else the last; `versions`: what each has, "" for none."""
    return next((python for python, version in versions.items() if version), [*versions][-1])


def judge_others(chosen: str, versions: Mapping[str, str]) -> Iterable[Check]:
    """The interpreters that jobs may be started with instead, where those could not be captured."""
    for python, version in versions.items():
        if python != chosen and is_too_old(version):
            advice = f"too old, where jobs train with it: {TOO_OLD_ADVICE} there"
            yield Check("pytorch", Verdict.WARN, f"{version} in {python}", advice)
