"""A timeline's address: it opens the same view again, and what cannot be read of it is left out and named."""

import json
import re
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, expect

from ..looking import PIXELS
from .views import TIMELINE, choose_widest, open_timeline, state_of, tree, wait_for_state

SCROLLED = ".timeline-scroll"


def address_of(view: str | dict[str, Any]) -> str:
    """The timeline with this view in its address."""
    return f"{TIMELINE}?view={quote(view if isinstance(view, str) else json.dumps(view))}"


def test_an_address_opens_the_same_view_again(page: Page) -> None:
    picture = open_timeline(page)
    choose_widest(page, picture)
    wait_for_state(page, "%22chosen%22%3A%7B")
    page.get_by_role("application").focus()
    page.keyboard.press("m")
    wait_for_state(page, "%22mark%22%3A%5B")
    page.get_by_label(re.compile("Group below")).fill("12")
    before = wait_for_state(page, "%22group%22%3A12")
    caption = page.locator(".timeline-chosen").inner_text()
    pixels = open_timeline(page, page.url).evaluate(PIXELS)
    assert state_of(page) == before
    expect(page.locator(".timeline-chosen")).to_have_text(caption, use_inner_text=True)
    assert open_timeline(page, page.url).evaluate(PIXELS) == pixels


def test_an_address_keeps_the_opened_lines_of_the_tree_and_the_scroll_of_the_rows(page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 600})
    picture = open_timeline(page, address_of({"version": 1, "open": [0, 1, 3, 2]}))
    box = picture.bounding_box()
    assert box
    page.mouse.move(box["x"] + 60, box["y"] + 100)
    page.mouse.wheel(0, 150)
    row, pixels = wait_for_state(page, "%22scroll%22%3A%5B")["scroll"]
    assert pixels >= 0
    assert row in range(4)
    page.get_by_role("treegrid").focus()
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    before = wait_for_state(page, r"%22tree%22%3A%7B%22rank%22%3A2%2C%22lines%22%3A%22\d+\.")
    lines = tree(page).all_inner_texts()
    top = page.locator(SCROLLED).evaluate("element => element.scrollTop")
    assert top == 150
    open_timeline(page, page.url)
    expect(tree(page)).to_have_text(lines, use_inner_text=True)
    assert page.locator(SCROLLED).evaluate("element => element.scrollTop") == top
    page.wait_for_timeout(300)
    assert state_of(page) == before


def test_what_an_address_says_wrongly_is_left_out_and_named(page: Page) -> None:
    wrong = {"version": 1, "open": [1], "scroll": [0, -5], "tree": {"rank": 1, "lines": "0.x"}, "fold": "sideways"}
    open_timeline(page, address_of(wrong))
    words = page.get_by_role("status").filter(has_text="The address was read but for this")
    expect(words).to_contain_text("how far the rows are scrolled, the opened lines of the tree, which ranks are rows")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.keyboard.press("w")
    state = wait_for_state(page, "%22start%22%3A[1-9]")
    assert (state["open"], state["fold"], state["scroll"], state["tree"]) == ([1], "all", None, None)


def test_an_address_that_is_no_view_opens_the_first_one(page: Page) -> None:
    for view in ("{", "[1]", json.dumps({"version": 1, "search": "x" * 5000})):
        open_timeline(page, address_of(view))
        expect(page.get_by_text(re.compile("read but for this: the view"))).to_be_visible()
        assert state_of(page)["open"] == [2]


def test_back_undoes_what_was_opened_and_what_was_fitted(page: Page) -> None:
    page.goto("/reports/team-a/slow")
    page.get_by_role("link", name="Timeline", exact=True).click()
    wait_for_state(page, "%22open%22%3A%5B2%5D")
    page.locator(".timeline-scroll canvas[data-loading=false]").wait_for()
    tree(page).nth(1).click()
    wait_for_state(page, "%22end%22%3A[1-9]")
    page.keyboard.press("w")
    page.keyboard.press("j")
    wait_for_state(page, "%22open%22%3A%5B3%5D")
    page.go_back()
    wait_for_state(page, "%22open%22%3A%5B2%5D")
    page.go_back()
    expect(page).not_to_have_url(re.compile("%22end%22"))
    page.go_back()
    expect(page).to_have_url(re.compile("/reports/team-a/slow$"))
