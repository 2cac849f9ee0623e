"""The search in a timeline: names are text, where it looked, from one event to the next."""

import re

from playwright.sync_api import Page, expect

from ..looking import PIXELS
from .views import open_timeline, wait_for_state


def test_names_of_events_are_text_and_nothing_else(page: Page) -> None:
    picture = open_timeline(page, "/reports/team-c/hostile/timeline")
    assert picture.evaluate(PIXELS)["colors"] > 5
    page.get_by_label("Search the names of events").fill("onerror")
    found = page.get_by_role("list", name="Names found").get_by_role("button").first
    expect(found).to_contain_text("\\u202Egnp.exe")
    page.get_by_label("Search the names of events").fill("longlong")
    expect(found).to_contain_text("…")
    assert len(found.inner_text()) < 100
    page.get_by_label("Search the names of events").fill("nul")
    expect(found).to_contain_text("nul\\u0000\\u2067")
    assert page.locator("main img").count() == 0
    assert page.title() != "1"


def test_the_search_says_where_it_looked_and_takes_a_rank_more(page: Page) -> None:
    open_timeline(page)
    page.get_by_label("Search the names of events").fill("cudaStreamSync")
    page.get_by_role("list", name="Names found").get_by_role("button", name="cudaStreamSynchronize").click()
    expect(page.get_by_label("Search the names of events")).to_have_value("cudaStreamSynchronize")
    found = page.get_by_role("list", name="Names found").get_by_role("button").first
    expect(page.get_by_text("Searched: all events of the open rank 2")).to_be_visible()
    count = re.search(r"(\d+) ×", found.inner_text())
    assert count
    page.get_by_role("button", name="Next event").click()
    expect(page.locator(".timeline-chosen")).to_contain_text(f"{count[1]} times on rank 2")
    page.get_by_label("3 other ranks with events").fill("1")
    page.get_by_role("button", name="Search it too").click()
    expect(page.get_by_text("Searched: all events of the open ranks 2, 1")).to_be_visible()
    expect(found).to_contain_text(f"rank 2: {count[1]}, rank 1: ")


def test_the_line_of_code_that_the_verdict_names_is_found(page: Page) -> None:
    open_timeline(page, "/reports/team-c/hostile/timeline")
    expect(page.locator(".timeline-verdict")).to_contain_text("dataset.py:41")
    page.get_by_label("Search the names of events").fill("__getitem__")
    line = page.get_by_role("list", name="Lines of code found").get_by_role("listitem").first
    expect(line).to_contain_text("dataset.py:41 in Pictures.__getitem__, 90 % of the samples of rank 2")
    line.get_by_role("link", name="See the report").click()
    expect(page.locator("#verdict-title")).to_be_visible()


def test_the_next_event_that_a_search_finds_is_shown_and_chosen(page: Page) -> None:
    open_timeline(page, "/reports/team-c/loop/timeline")
    page.get_by_label("Search the names of events").fill("addmmbackward")
    page.get_by_role("button", name="Next event").click()
    first = wait_for_state(page, "%22chosen%22%3A%7B")
    expect(page.locator(".timeline-chosen")).to_contain_text("AddmmBackward0")
    page.get_by_role("application").focus()
    page.keyboard.press("n")
    later = first["chosen"]["start"] + 1_000_000
    second = wait_for_state(page, f"%22start%22%3A{later}%7D")
    assert (second["start"] >= 0, second["chosen"]["rank"]) == (True, 0)
    page.keyboard.press("p")
    wait_for_state(page, f"%22start%22%3A{first['chosen']['start']}%7D")
    page.keyboard.press("p")
    expect(page.get_by_role("alert")).to_contain_text("no earlier event")


def test_arguments_are_searched_in_the_trace_when_asked(page: Page) -> None:
    open_timeline(page, "/reports/team-c/loop/timeline")
    page.get_by_label("Search the names of events").fill("correlation: 2")
    expect(page.get_by_text("No event has such a name.")).to_be_visible()
    page.get_by_role("button", name="Search the arguments on rank 0").click()
    found = page.get_by_role("list", name="Arguments found")
    # By the trace: the launch of a kernel, and that kernel.
    expect(found).to_contain_text("2 events of rank 0 with this in the arguments")
    found.get_by_role("button", name="mse").click()
    chosen = wait_for_state(page, "%22chosen%22%3A%7B")["chosen"]
    assert (chosen["rank"], chosen["start"]) == (0, 360_000)
    expect(page.locator(".timeline-chosen")).to_contain_text("mse")
    page.get_by_label("Search the names of events").fill("correlation: 99999")
    page.get_by_role("button", name="Search the arguments on rank 0").click()
    expect(found).to_contain_text("0 events of rank 0")
