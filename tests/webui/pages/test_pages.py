"""Every page, in both themes: it shows what it is for, and hinders nobody who reads with a screen reader."""

import re

import pytest
from harness.browser import keep_picture
from playwright.sync_api import Page

from .looking import find_serious, open_whole

PAGES = {
    "/fleet": "llama",
    "/fleet#jobs": "active, no capture of its name",
    "/losses": "Lost at least",
    "/policies": "not seen yet",
    "/policies/team-a/llama": "Already captured",
    "/fleet/team-a/Job/llama": "healthy-name",
    "/requests": "running-name",
    "/requests?capture=new": "The same as YAML",
    "/requests/team-b/failed": "nothing asks for orders in this process",
    "/requests/team-a/hung": "63 ranks (0, 1, 2",
    "/reports/team-a/slow": "Rank 2 holds the job up",
    "/reports/team-a/slow?rank=2": "All ranks",
    "/reports/team-c/sampled?rank=2": "throttled by power",
    "/reports/team-c/hostile": "onerror",
    "/reports/team-c/loop/timeline": "Whole time",
    "/reports/team-c/streams?by=stream&kernel=compute gemm#kernels": "each stream's mean is compared",
    "/whoami": "You may read",
    "/diff?base=team-a/healthy&new=team-a/slow&order=given": "Iterations became slower",
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("address", "wanted"), PAGES.items())
def test_a_page_shows_what_it_is_for_and_axe_finds_nothing_serious(
    page: Page, address: str, wanted: str, theme: str
) -> None:
    open_whole(page, address)
    page.get_by_text(wanted).first.wait_for()

    keep_picture(page, f"{re.sub(r'[^a-z]+', '-', address.lower()).strip('-')}-{theme}")
    assert find_serious(page) == []


def test_pages_fit_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for address, wanted in (*PAGES.items(), ("/reports/team-a/slow/timeline", "Timeline")):
        page.goto(address)
        page.get_by_text(wanted).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, address
    brand = page.locator(".brand").bounding_box()
    assert brand
    assert brand["height"] < 30, "its name stands in one line"
