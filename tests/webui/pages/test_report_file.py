"""report.html in a real Chromium, from a file: the page of the web UI without a service."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleetprof_analyzer.page.page import render_page
from fleetprof_api import keys
from fleetprof_api.report.report import read_report
from harness.browser import PATIENCE_MS
from harness.memory_store import MemoryStore
from harness.reports.large_job import enlarge
from playwright.sync_api import Browser, Page, expect

LATE_RANK = 637


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab without network; a test fails where script or policy complains."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def file(analysed: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a report of four ranks, whose traces lie beside it."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    report = read_report(analysed.get(keys.report_key("team-a", "slow")))
    path.write_text(render_page(report, ""), "utf-8")
    return path


def test_it_shows_what_the_web_ui_shows(tab: Page, file: Path) -> None:
    tab.goto(file.as_uri())
    expect(tab.locator(".verdict-sentence")).to_contain_text("Rank 2 holds the job up")
    expect(tab.locator(".key-figures")).to_contain_text("Median iteration")
    expect(tab.locator("#idle")).to_contain_text("Data loading")
    expect(tab.locator("#kernels tbody tr").first).to_contain_text("NCCL AllReduce")
    expect(tab.locator("#glossary")).to_contain_text("exposed communication")
    expect(tab.locator("#downloads li a").first).to_have_attribute("href", "./ranks/0/trace.json.gz")
    assert tab.locator('a[href^="/"]').count() == 0, "nothing leads to a service"


def test_its_tables_are_sorted_searched_and_opened_without_a_service(tab: Page, file: Path) -> None:
    tab.goto(file.as_uri())
    kernels = tab.locator("#kernels")
    kernels.get_by_role("searchbox").fill("backward_0")
    expect(kernels.locator("tbody tr")).to_have_count(1)
    kernels.get_by_role("button", name="Launches of backward_0").click()
    expect(kernels.get_by_role("group", name="Launches of one kernel")).to_contain_text("rank 2")
    tab.get_by_role("link", name="Show rank 2").click()
    expect(kernels).to_contain_text("rank 2 alone")


def test_a_thousand_ranks_are_one_file(tab: Page, analysed: MemoryStore, tmp_path: Path) -> None:
    report = read_report(analysed.get(keys.report_key("team-a", "slow")))
    file = tmp_path / "report.html"
    file.write_text(render_page(enlarge(report, 1000, LATE_RANK)), "utf-8")
    assert file.stat().st_size < 1_500_000
    tab.goto(file.as_uri())
    expect(tab.locator("#ranks")).to_contain_text("1,000 ranks")


def test_without_script_the_verdict_the_advice_and_the_ranks_are_there(browser: Browser, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("body")).to_contain_text("Rank 2 holds the job up")
    expect(page.locator("body")).to_contain_text("What to try: run rank 2 on another GPU")
    expect(page.locator("tbody tr")).to_have_count(4)
    context.close()
