"""The docs site: every page is in its navigation, links out of docs/ lead to the repository, rows have addresses."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from harness.repository import ROOT

pytest.importorskip("mkdocs", reason="make docs installs it")


def load_hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs/site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site = load_hooks()


def test_the_navigation_has_every_page() -> None:
    sections = site.read_navigation((ROOT / "docs/index.md").read_text())
    pages = {
        page
        for section in sections
        for pages in section.values()
        for page in ([pages] if isinstance(pages, str) else pages)
    }
    here = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages == here | {site.HELP}


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("faq.md", "](../README.md#install)", f"]({site.REPOSITORY}README.md#install)"),
        ("tutorial/fleet.md", "](../../SECURITY.md)", f"]({site.REPOSITORY}SECURITY.md)"),
        ("tutorial/fleet.md", "](../install.md#uninstall)", "](../install.md#uninstall)"),
    ],
)
def test_a_link_out_of_docs_leads_to_the_repository(page: str, link: str, shown: str) -> None:
    assert site.lead_out(link, page) == shown


def test_a_row_has_its_name_as_address_once() -> None:
    html = "<tr>\n<td><code>Busy</code></td></tr><tr><td><code>Busy</code></td></tr>"
    assert site.address_rows(html).count('id="Busy"') == 1


def test_each_command_brings_its_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["mkdocs"])
    text = site.write_help()
    assert "### fleetprof capture\n\n```text\nUsage: fleetprof capture" in text
    assert "Usage: kubectl fleetprof capture" in text
    assert str(Path.home()) not in text
