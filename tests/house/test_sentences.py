"""Measures find facts, and words say them: no measure over all ranks holds a sentence of the report."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ANALYZER = Path(__file__).parents[2] / "analyzer" / "fleetprof_analyzer"
MEASURES = sorted(file for folder in ("job", "comparison") for file in (ANALYZER / folder).rglob("*.py"))
# What numbers of the evidence are called: names that the report publishes, longer than others.
STRAGGLERS = ANALYZER / "job" / "stragglers"
NAME_EVIDENCE = {STRAGGLERS / "named_ranks.py", *(STRAGGLERS / "causes").glob("*.py")}
MOST_WORDS = 6  # of a name; a log's line has fewer too


def longest_texts(source: str) -> Iterator[str]:
    """Texts of a module that are neither docstrings nor names."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            text = node.value
        else:
            continue
        if len(re.findall(r"(?<!\S)[A-Za-z']{2,}(?=[\s,;:]|$)", text)) > MOST_WORDS:
            yield text


@pytest.mark.parametrize(
    "file",
    [file for file in MEASURES if file not in NAME_EVIDENCE],
    ids=lambda file: str(file.relative_to(ANALYZER)),
)
def test_no_measure_makes_a_sentence(file: Path) -> None:
    assert list(longest_texts(file.read_text())) == []


@pytest.mark.parametrize(("source", "found"), [
    ('"""A docstring may be as long as it has to be to say why."""', 0),
    ('log.error("the straggler analysis failed")', 0),
    ('reason = "there is not enough memory to compare the ranks\' operations"', 1),
    ('reason = f"only {percent} of the operations have their partners on the other ranks"', 2),
])  # fmt: skip
def test_what_is_a_sentence(source: str, found: int) -> None:
    assert len(list(longest_texts(source))) == found
