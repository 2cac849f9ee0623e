"""One name for each thing: what docs/glossary.md tells not to write stands in no page, help, report or web page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from harness.repository import ROOT, source_files
from house.style import strip_code

GLOSSARY: Final = (ROOT / "docs/glossary.md").read_text()
TABLE: Final = GLOSSARY.split("## One name for each thing")[1].split("\n## ")[0]
BANNED: Final = [
    phrase.strip()
    for row in re.findall(r"^\| (?!we write|---)[^|]+ \| ([^|]+) \|$", TABLE, re.M)
    for phrase in row.split(",")
]
PATTERN: Final = re.compile(rf"\b(?:{'|'.join(map(re.escape, BANNED))})s?\b", re.IGNORECASE)
# Records of what was measured and released, and the list itself.
RECORDS: Final = ("benchmarks.md", "glossary.md", "tables.md")
PAGES: Final = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in RECORDS),
]
SHOWN: Final = ("analyzer/", "cli/", "webui/fleetprof_webui/", "notebook/", "operator/fleetprof_operator/", "sidecar/")
NAMES: Final = re.compile(r"\w+\.\w[\w.]*")  # of a report's fields


def find_banned(text: str) -> list[str]:
    """The banned words in a page's sentences, code and addresses aside."""
    return PATTERN.findall(NAMES.sub("", strip_code(text)))


def shown_texts(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of what a module may show: strings of several words that are no docstrings."""
    tree = ast.parse(source)
    hidden = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            yield from [(node.lineno, node.value)] if " " in node.value else []


def page_texts(source: str) -> str:
    """A source of the web UI, or a template, without its comments and the names in its code."""
    comments = r"/\*.*?\*/|^\s*//[^\n]*$|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}"
    bare = re.sub(comments, "", source, flags=re.DOTALL | re.MULTILINE)
    quoted = [text for text in re.findall(r'"([^"\n]*)"', bare) if " " in text]
    return "\n".join([*re.findall(r">([^<>{}=;()]+)[<{]", re.sub(r'"[^"\n]*"', "", bare)), *quoted])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_has_one_name_for_each_thing(page: Path) -> None:
    assert find_banned(page.read_text()) == [], "the glossary has the word"


def test_so_has_what_commands_reports_and_messages_say() -> None:
    found = [
        f"{path}:{line}: {match}"
        for path in source_files()
        if path.startswith(SHOWN)
        for line, text in shown_texts((ROOT / path).read_text())
        for match in find_banned(text)
    ]
    assert found == [], "the glossary has the word"


def test_so_has_the_chart() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for path in sorted((ROOT / "charts/fleetprof").rglob("*.*"))
        if path.suffix in (".yaml", ".tpl", ".txt", ".md")
        for match in PATTERN.findall(NAMES.sub("", path.read_text()))
    ]
    assert found == [], "the glossary has the word"


def test_so_have_web_pages() -> None:
    sources = [
        *(ROOT / "webui/frontend/src").rglob("*.tsx"),
        *(ROOT / "analyzer/fleetprof_analyzer/views").rglob("*.j2"),
    ]
    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for path in sources
        for match in PATTERN.findall(page_texts(path.read_text()))
    ]
    assert found == [], "the glossary has the word"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The trainer waits.", ["trainer"]),
        ("Two Gains.", ["Gains"]),
        ("`gain` is a name, and [so](limits.md#a-gain)", []),
        ("    a trainer in a block", []),
        ("again, retrainers, whisky", []),
    ],
)
def test_names_of_the_api_are_not_words(text: str, found: list[str]) -> None:
    assert find_banned(text) == found


def test_only_texts_of_a_web_page_count() -> None:
    source = (
        '// a trainer\nconst gain = row.gain;\n<p className="quiet">A silence of {gain}</p> header: "The gain of it"'
    )
    assert PATTERN.findall(page_texts(source)) == ["silence", "gain"]
