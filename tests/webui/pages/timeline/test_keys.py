"""The keys of a timeline: they pan and zoom within its time, choose, search, and are listed."""

import re

import pytest
from playwright.sync_api import Page, expect

from ..looking import find_serious
from .views import LATE, choose_widest, open_timeline, state_of, wait_for_rest, wait_for_state


def test_keys_work_as_soon_as_the_page_is_there(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("w")
    near = wait_for_state(page, "%22start%22%3A[1-9]")
    page.keyboard.press("d")
    right = wait_for_rest(page, near)
    length = near["end"] - near["start"]
    assert right["start"] == pytest.approx(near["start"] + length / 10)
    assert right["end"] - right["start"] == pytest.approx(length)
    page.keyboard.press("a")
    page.keyboard.press("w")
    page.keyboard.press("s")
    back = wait_for_rest(page, right)
    assert (back["start"], back["end"]) == pytest.approx((near["start"], near["end"]), abs=1)

    page.keyboard.press("/")
    expect(page.get_by_label("Search the names of events")).to_be_focused()
    page.keyboard.type("no such name")
    expect(page.get_by_text("No event has such a name.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search the names of events")).to_have_value("")


def test_no_view_begins_before_the_first_event_or_ends_after_the_last(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("w")
    near = wait_for_state(page, "%22start%22%3A[1-9]")
    for _ in range(4):
        page.keyboard.press("a")
    left = wait_for_rest(page, near)
    assert left["start"] == 0
    page.keyboard.press("s")
    whole = wait_for_rest(page, left)
    page.keyboard.press("s")
    page.keyboard.press("d")
    page.wait_for_timeout(300)
    assert (state_of(page)["start"], state_of(page)["end"]) == (0, whole["end"])


def test_a_question_mark_lists_the_keys_which_can_be_kept_to_the_picture(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys of the timeline")
    expect(keys.get_by_role("rowheader", name="W S")).to_be_visible()
    assert find_serious(page) == []
    keys.get_by_label("Keys work anywhere").uncheck()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    page.get_by_role("application").focus()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    keys.get_by_role("button", name="Close").click()
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Keys ( ? )").click()
    expect(keys).to_be_visible()


def test_ranks_are_gone_to_folded_and_opened_again_by_keys(page: Page) -> None:
    open_timeline(page)
    wait_for_state(page, f"%22open%22%3A%5B{LATE}%5D")
    page.keyboard.press("j")
    wait_for_state(page, f"%22open%22%3A%5B{LATE + 1}%5D")
    page.keyboard.press("k")
    page.keyboard.press("k")
    wait_for_state(page, f"%22open%22%3A%5B{LATE - 1}%5D")
    page.keyboard.press("o")
    expect(page).not_to_have_url(re.compile("%22open%22"))
    page.keyboard.press("o")
    wait_for_state(page, f"%22open%22%3A%5B{LATE - 1}%5D")


def test_a_click_chooses_arrows_walk_and_escape_lets_go(page: Page) -> None:
    picture = open_timeline(page)
    choose_widest(page, picture)
    first = wait_for_state(page, "%22chosen%22%3A%7B")["chosen"]
    expect(page.locator(".timeline-chosen")).to_contain_text(f"rank {LATE}")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(100)
    assert state_of(page)["chosen"]["start"] > first["start"]
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("%22chosen%22"))
