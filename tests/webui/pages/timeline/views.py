"""The way of tests to open a timeline, and what its address, its tree and its picture say."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

TIMELINE = "/reports/team-a/slow/timeline"
LATE = 2
FIRST: dict[str, Any] = {
    "start": 0,
    "end": 0,
    "fold": "all",
    "open": [],
    "longest": False,
    "search": "",
    "group": 5,
} | dict.fromkeys(("mark", "chosen", "scroll", "tree"))


def open_timeline(page: Page, address: str = TIMELINE) -> Locator:
    """The picture, when all of it is there."""
    page.goto(address)
    picture = page.locator(".timeline-scroll canvas[data-loading=false]")
    picture.wait_for()
    expect(picture).not_to_have_attribute("data-rectangles", "0")
    return picture


def state_of(page: Page) -> dict[str, Any]:
    """The state that the address shows, with what it leaves out because it is as at first."""
    found: dict[str, Any] = json.loads(parse_qs(urlsplit(page.url).query)["view"][0])
    return FIRST | found


def wait_for_state(page: Page, pattern: str) -> dict[str, Any]:
    """The state as soon as the address matches."""
    expect(page).to_have_url(re.compile(pattern))
    return state_of(page)


def wait_for_rest(page: Page, before: dict[str, Any]) -> dict[str, Any]:
    """The state when it is no longer `before`, nor on its way."""
    expect(page).not_to_have_url(re.compile(re.escape(f"%22end%22%3A{json.dumps(before['end'])}") + "%(2C|7D)"))
    page.wait_for_timeout(300)
    return state_of(page)


def tree(page: Page) -> Locator:
    """Rows of the tree grid below the picture."""
    return page.get_by_role("treegrid").get_by_role("row")


def choose_widest(page: Page, picture: Locator, *, click: bool = True) -> tuple[float, float]:
    """A place on the picture inside an event of the device: the first one that answers the pointer, clicked or not."""
    box = picture.bounding_box()
    assert box
    for down in range(60, 420, 9):
        for right in range(200, 900, 40):
            x, y = box["x"] + right, box["y"] + down
            page.mouse.move(x, y)
            if page.locator(".timeline-hover", has_text="times on rank").count():
                if click:
                    page.mouse.click(x, y)
                return x, y
    raise AssertionError("nothing answers the pointer")
