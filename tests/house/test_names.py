"""A variable is named by a noun of what it holds, not by the verb that filled it."""

import ast
from collections.abc import Iterator

import pytest
from harness.repository import ROOT, source_files

# Each hides what it is a name of: a message, an answer, a file, a number?
VERBS = {"said", "told", "got"}


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Whatever a module gives a name to: variables, parameters, attributes, patterns, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


@pytest.mark.parametrize(
    "code",
    [
        "said = 1", "for said in x: pass", "def f(said): pass", "self.said = 1", "self._said = 1", "(said := 1)",
        "def said(): pass", "with x as said: pass", "match x:\n case [said]: pass", "{said: 1 for said in x}",
        "class A:\n said: str", "try:\n pass\nexcept E as said: pass",
    ],
)  # fmt: skip
def test_every_way_to_give_a_name_is_seen(code: str) -> None:
    assert "said" in {name.strip("_") for name, _ in bound_names(ast.parse(code))}


def test_no_name_is_a_verb_that_hides_what_it_holds() -> None:
    found = []
    for path in source_files():
        names = bound_names(ast.parse((ROOT / path).read_text()))
        found += [f"{path}:{line}: {name}" for name, line in names if name.strip("_") in VERBS]
    assert found == [], "name what it holds: message, answer, warnings, output, ledger"
