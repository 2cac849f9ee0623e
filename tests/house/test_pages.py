"""The pages as a whole: links and citations lead to headings, the index has every page, the glossary every term."""

import re
import subprocess
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from fleetprof_api.report.idle_causes import IDLE_CAUSES
from fleetprof_api.report.report import TimeBreakdown
from fleetprof_api.report.stragglers import Cause, Stragglers

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
STAGES = ["data loading", "forward", "loss", "backward", "zero-grad", "optimizer", "host", "other"]


def read_anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("A start at one step", "a-start-at-one-step"), ("fleetprof list, report", "fleetprof-list-report")],
)
def test_an_anchor_is_what_github_makes_of_a_heading(tmp_path: Path, heading: str, anchor: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"## {heading}\n")
    assert read_anchors(page) == {anchor}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_into_a_page_leads_to_a_heading(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        if not target.startswith("https://"):
            assert anchor in read_anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_every_citation_in_the_code_leads_to_a_heading() -> None:
    cited = subprocess.run(
        ["git", "grep", "-noE", r"docs/[a-z0-9-]+\.md#[A-Za-z0-9_-]+", "--", "*.py", "*.c", "*.h", "*.proto", "*.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if cited.returncode > 1:
        pytest.skip("not a git checkout")
    broken = []
    for line in cited.stdout.splitlines():
        page, _, anchor = line.split(":", 2)[2].partition("#")
        if anchor not in read_anchors(ROOT / page):
            broken.append(line)
    assert broken == []


def test_no_comment_cites_a_section_by_its_number() -> None:
    """Pages have no numbered sections: a citation names the page and the heading."""
    command = ["git", "grep", "-n", "\N{SECTION SIGN}", "--", "*.py", "*.yaml", "*.c", "*.proto"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == ""


def test_the_index_names_every_page_once() -> None:
    index = (ROOT / "docs/index.md").read_text()
    linked = re.findall(r"^\| \[((?:tutorial/)?[\w.-]+\.md)\]", index, re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(linked) == sorted(page for page in pages if page != "index.md")


@pytest.mark.parametrize("name", get_args(Cause))
def test_the_glossary_has_every_cause(name: str) -> None:
    assert f"| `{name}` |" in GLOSSARY


@pytest.mark.parametrize("name", get_args(get_type_hints(Stragglers)["verdict"]))
def test_the_glossary_has_every_verdict(name: str) -> None:
    assert f"`{name}`" in GLOSSARY


@pytest.mark.parametrize("name", [*TimeBreakdown.__struct_fields__[1:], *(row.title for row in IDLE_CAUSES.values())])
def test_the_glossary_has_every_part_of_the_time(name: str) -> None:
    assert f"| {name.replace('_', ' ')} |" in GLOSSARY


@pytest.mark.parametrize("name", STAGES)
def test_the_glossary_has_every_stage(name: str) -> None:
    assert f"*{name}*" in GLOSSARY
