"""The threats of docs/security.md, and the tests that its rows name: the one list of attacks that there is."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/security.md"

_HEADERS = ("| threat | answer | test |", "| identity | what it can do | what it cannot do (tried) | test |")
_TEST = re.compile(r"`(tests/[\w/.-]+\.py::\w+)`")


@dataclass(frozen=True, slots=True)
class Threat:
    """One row: the threat in words, and its tests as pytest names them (`tests/…/test_x.py::test_y`)."""

    text: str
    tests: tuple[str, ...]


def read_threats(page: str) -> list[Threat]:
    """The rows of every table of threats on the page, in its order."""
    threats = []
    in_table = False
    for line in page.splitlines():
        if line in _HEADERS:
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            cells = line.strip("|").split(" | ")
            threats.append(Threat(cells[0].strip(), tuple(_TEST.findall(cells[-1]))))
    return threats


def exists(test: str) -> bool:
    """Tells whether the file of a test has a function, or a method, of that name."""
    path, _, name = test.partition("::")
    return (ROOT / path).exists() and name in {function.name for function in _functions(ROOT / path)}


def find_marked() -> list[str]:
    """All tests that carry `@pytest.mark.attack`."""
    return [
        f"{path.relative_to(ROOT)}::{function.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for function in _functions(path)
        if any(ast.unparse(decorator).startswith("pytest.mark.attack") for decorator in function.decorator_list)
    ]


def _functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
