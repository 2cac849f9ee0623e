"""The picture of a timeline in a real Chromium: what is drawn, what the pointer tells, the whole time beside it."""

import json
import re

import pytest
from harness.browser import keep_picture
from playwright.sync_api import Page, expect

from ..looking import PERFETTO, PIXELS, find_serious
from .views import LATE, choose_widest, open_timeline, state_of, wait_for_rest, wait_for_state


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_late_rank_is_drawn_at_once_and_axe_finds_nothing_serious(page: Page, theme: str) -> None:
    picture = open_timeline(page)
    assert state_of(page)["open"] == [LATE]
    expect(picture).to_have_attribute("aria-label", re.compile("4 ranks over .*; late: rank 2"))
    drawn = picture.evaluate(PIXELS)
    assert drawn["drawn"] == 1
    assert drawn["colors"] > 20
    background = picture.evaluate("canvas => [...canvas.getContext('2d').getImageData(600, 2, 1, 1).data]")
    assert background[:3] == ([20, 23, 28] if theme == "dark" else [255, 255, 255])
    keep_picture(page, f"timeline-{theme}")
    assert find_serious(page) == []


def test_what_lies_under_the_pointer_is_told_and_a_brush_measures(page: Page) -> None:
    picture = open_timeline(page)
    x, y = choose_widest(page, picture, click=False)
    page.mouse.move(x, y)
    expect(page.locator(".timeline-hover")).to_contain_text("times on rank 2")
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(x + 200, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    start, end = wait_for_state(page, "%22mark%22%3A%5B")["mark"]
    assert end > start


def test_the_colours_are_named_beside_the_picture(page: Page) -> None:
    open_timeline(page)
    legend = page.get_by_role("list", name="Colours").get_by_role("listitem")
    expect(legend).to_have_count(9)
    expect(legend.nth(1)).to_have_text("communication, exposed")
    swatches = [one.evaluate(PIXELS)["colors"] for one in legend.locator("canvas").all()]
    assert swatches[0] == 1
    assert all(colors > 1 for colors in swatches[1:])


def test_only_the_longest_are_drawn_when_asked(page: Page) -> None:
    picture = open_timeline(page)
    all_of_them = int(picture.get_attribute("data-rectangles") or 0)
    page.get_by_role("application").focus()
    page.keyboard.press("l")
    expect(page.get_by_label("Only the longest")).to_be_checked()
    wait_for_state(page, "%22longest%22%3Atrue")
    assert 0 < int(picture.get_attribute("data-rectangles") or 0) < all_of_them


def test_the_minimap_shows_the_whole_time_and_moves_the_view(page: Page) -> None:
    open_timeline(page)
    bar = page.get_by_role("scrollbar", name="Part of the whole time that is in view")
    assert bar.evaluate(PIXELS)["colors"] > 5
    page.get_by_role("application").focus()
    for _ in range(6):
        page.keyboard.press("w")
    near = wait_for_state(page, "%22end%22%3A[1-9]")
    expect(bar).to_have_attribute("aria-valuenow", "50")
    box = bar.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 10)
    right = wait_for_rest(page, near)
    assert right["start"] > near["start"]
    assert right["end"] - right["start"] == pytest.approx(near["end"] - near["start"])
    expect(bar).not_to_have_attribute("aria-valuenow", "50")
    # Taken hold of, the window follows the pointer.
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 10, steps=3)
    page.mouse.up()
    left = wait_for_rest(page, right)
    assert left["start"] < right["start"]
    bar.focus()
    page.keyboard.press("Home")
    first = wait_for_rest(page, left)
    assert first["start"] == 0


def test_the_whole_time_comes_back(page: Page) -> None:
    open_timeline(page)
    page.get_by_role("application").focus()
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile("%22end%22%3A[1-9]"))
    page.get_by_role("button", name="Whole time", exact=True).click()
    expect(page).not_to_have_url(re.compile("%22end%22"))


def test_the_part_in_view_opens_in_perfetto(page: Page) -> None:
    page.context.route(
        "https://ui.perfetto.dev/**", lambda route: route.fulfill(body=PERFETTO, content_type="text/html")
    )
    open_timeline(page, "/reports/team-c/loop/timeline")
    page.get_by_role("application").focus()
    for _ in range(4):
        page.keyboard.press("w")
    wait_for_state(page, "%22end%22%3A[1-9]")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Open this part in Perfetto").click()
    opened.value.locator("#events").wait_for()
    events = json.loads(opened.value.locator("#events").inner_text())["traceEvents"]
    shown = {event["name"] for event in events if event["ph"] == "X"}
    assert "gemm" in shown
    assert "ProfilerStep#2" in shown
    assert "ProfilerStep#0" not in shown
    assert {"s", "f"} <= {event["ph"] for event in events}
