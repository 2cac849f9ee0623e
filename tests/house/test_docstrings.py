"""Docstrings say what a thing is or does: subject, verb, object."""

import ast

import pytest
from harness.repository import ROOT, source_files

QUESTIONS = ("What", "How", "Where", "Whether", "Those", "Of", "When", "Which", "Who", "Whose", "Whom", "Why")
# The room whose older docstrings begin so; whoever works in it mends them.
NOT_YET = "analyzer/fleetprof_analyzer/job/stragglers/"
OF_OLD = QUESTIONS[:6]


def first_words(source: str) -> list[tuple[int, str]]:
    """(line, first word) of each docstring."""
    able = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, able)]
    texts = [(node.body[0].lineno, ast.get_docstring(node)) for node in nodes if node.body]
    return [(line, text.split()[0]) for line, text in texts if text]


def test_no_docstring_begins_as_a_question() -> None:
    found = [
        f"{path}:{line}: {word} …"
        for path in source_files()
        for line, word in first_words((ROOT / path).read_text())
        if word in (OF_OLD if str(path).startswith(NOT_YET) else QUESTIONS)
    ]
    assert found == [], "say what it is or does: a noun, or a verb in the third person"


@pytest.mark.parametrize(("source", "words"), [
    ('"""What it is."""', ["What"]),
    ('def count():\n    """How many."""\n', ["How"]),
    ('class Rank:\n    """A rank."""\n    name = "What"\n', ["A"]),
    ("value = 1\n", []),
])  # fmt: skip
def test_only_docstrings_count(source: str, words: list[str]) -> None:
    assert [word for _, word in first_words(source)] == words
