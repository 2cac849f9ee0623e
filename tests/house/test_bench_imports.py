"""Benches import what is there: mypy does not read them, and a renamed module would stay unnoticed until one runs."""

import ast
from importlib import import_module
from importlib.util import find_spec

import pytest
from harness.repository import ROOT, source_files

BENCHES = [path for path in source_files() if path.startswith("bench/")]
OURS = ("fleetprof_", "harness.")


def imports_of(source: str) -> list[tuple[int, str, str]]:
    """(line, module, name) of each name that is imported from our packages."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and not node.level]
    return [
        (node.lineno, node.module, alias.name)
        for node in found if node.module is not None and node.module.startswith(OURS)
        for alias in node.names
    ]  # fmt: skip


@pytest.mark.parametrize("path", BENCHES)
def test_every_name_that_a_bench_imports_exists(path: str) -> None:
    missing = [
        f"{path}:{line}: {module} has no {name}"
        for line, module, name in imports_of((ROOT / path).read_text())
        if find_spec(module) is None
        or (not hasattr(import_module(module), name) and find_spec(f"{module}.{name}") is None)
    ]
    assert missing == []
