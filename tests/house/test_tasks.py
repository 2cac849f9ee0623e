"""Twenty tasks of four readers: each answer stands below a heading, at most two links from the README or the index."""

import re
from pathlib import Path
from typing import Final

import pytest
from harness.repository import ROOT

RESEARCHER, PLATFORM, FLEET, DEVELOPER = "trains a model", "runs the cluster", "owns the fleet", "changes the code"
# reader, task, page, heading, words of the answer
TASKS: Final = [
    (RESEARCHER, "install it", "README.md", "Install", "make webui"),
    (RESEARCHER, "capture my job", "README.md", "Quick start", "fleetprof capture"),
    (RESEARCHER, "find out why my job is slow", "docs/tutorial/slow-job.md", "3. Read the answer", "potential saving"),
    (RESEARCHER, "prove that my fix helped", "docs/tutorial/slow-job.md", "5. Prove it", "fleetprof diff"),
    (RESEARCHER, "see which module takes the time", "README.md", "Which option for which question", "ModuleTree"),
    (RESEARCHER, "find the rank that hangs", "docs/hangs.md", "My job does not move", "fleetprof stacks"),
    (RESEARCHER, "use it with DeepSpeed", "docs/frameworks.md", "DeepSpeed", "fleetprof run"),
    (RESEARCHER, "use it in a Slurm allocation", "docs/local.md", "Capture a Slurm job", "srun"),
    (PLATFORM, "know what changes in my pods", "docs/injection.md", "The change", "PYTHONPATH"),
    (PLATFORM, "know what can break", "docs/tutorial/decide.md", "What can break", "cannot be pulled"),
    (PLATFORM, "know which rights it needs", "docs/tutorial/decide.md", "Rights", "fleetprof-editor"),
    (PLATFORM, "install it with my bucket", "docs/install.md", "Install", "store.s3.bucket"),
    (PLATFORM, "know which versions work", "docs/compatibility.md", "Compatibility", "PyTorch"),
    (PLATFORM, "remove it", "docs/install.md", "Uninstall", "helm uninstall"),
    (PLATFORM, "know why a rank has no trace", "docs/reasons.md", "Reasons of a rank", "NotPolling"),
    (FLEET, "see what all jobs do now", "docs/tutorial/fleet.md", "Day 2: look", "kubectl fleetprof top"),
    (FLEET, "have wasteful jobs captured", "docs/tutorial/fleet.md", "Day 4: let it capture", "LowUtilization"),
    (FLEET, "know what it costs at worst", "README.md", "Cost and safety", "at worst"),
    (DEVELOPER, "get a green test", "docs/tutorial/change-it.md", "Clone and test", "pytest"),
    (DEVELOPER, "add a finding", "docs/tutorial/change-it.md", "Add a finding", "registry.py"),
]


def read_section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one of its rank or higher."""
    text = (ROOT / page).read_text()
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^#{{1,6}} (?!#)|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no heading {heading}"
    whole = re.search(rf"^{found[1]} {re.escape(heading)}$(.*?)(?=^#{{1,{len(found[1])}}} |\Z)", text, re.M | re.DOTALL)
    return whole[1] if whole else found[2]


def linked_pages(page: Path) -> set[Path]:
    """The pages that a page links to."""
    links = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / link).resolve() for link in links if not link.startswith("https://")}


@pytest.fixture(scope="module")
def near() -> set[Path]:
    first = {(ROOT / "README.md").resolve(), (ROOT / "docs/index.md").resolve()}
    second = {page for known in first for page in linked_pages(known)}
    third = {page for known in second if known.exists() for page in linked_pages(known)}
    return first | second | third


def test_there_are_twenty_of_four_readers() -> None:
    assert len(TASKS) == 20
    assert len({reader for reader, *_ in TASKS}) == 4


@pytest.mark.parametrize(("reader", "task", "page", "heading", "words"), TASKS, ids=[f"{r}: {t}" for r, t, *_ in TASKS])
def test_the_answer_stands_near(near: set[Path], reader: str, task: str, page: str, heading: str, words: str) -> None:
    assert (ROOT / page).resolve() in near
    assert words in read_section(page, heading)
