"""Our exceptions are one tree: whoever calls us can take what we raise on purpose, and nothing else."""

import builtins
import re
from collections.abc import Iterable
from pathlib import Path

from harness.repository import ROOT, source_files

ROOTS = {"FleetprofError", "AgentError"}  # the agent imports nothing of ours
OUTSIDE = {name for name, it in vars(builtins).items() if isinstance(it, type) and issubclass(it, BaseException)}
OUTSIDE |= {"ClickException"}
CLASS = re.compile(r"^[ \t]*class (\w+)\(([^()]*)\):", re.MULTILINE)
WORD = re.compile(r"\w+")
EXEMPT = {"_Over": "passes `except Exception` on its way through other code"}


def classes_without_root(texts: Iterable[str]) -> list[str]:
    """The exceptions among these classes that descend from none of our roots."""
    bases = {name: set(WORD.findall(its)) for text in texts for name, its in CLASS.findall(text)}
    exceptions = _descendants(bases, ROOTS | OUTSIDE)
    return sorted(exceptions - _descendants(bases, ROOTS) - ROOTS - set(EXEMPT))


def _descendants(bases: dict[str, set[str]], roots: set[str]) -> set[str]:
    found: set[str] = set()
    while more := {name for name, its in bases.items() if its & (found | roots)} - found:
        found |= more
    return found


def test_a_class_of_its_own_is_found() -> None:
    text = "class A(ValueError): ...\nclass B(FleetprofError): ...\nclass C(B, OSError): ...\nclass D(A): ..."
    assert classes_without_root([text]) == ["A", "D"]


def test_every_exception_has_a_root() -> None:
    products = ("api/", "operator/", "sidecar/", "analyzer/", "webui/", "cli/", "notebook/")
    paths = [path for path in source_files() if path.startswith(products) and Path(path).suffix == ".py"]
    found = classes_without_root((ROOT / path).read_text() for path in paths)
    assert found == [], "give each the base FleetprofError (fleetprof_api.errors); in the agent, AgentError"
