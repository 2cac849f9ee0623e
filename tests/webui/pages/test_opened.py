"""The page of `fleetprof ui PATH…` shows its progress, then leads to the report."""

import json
import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from .looking import find_serious


def item(what: str, **more: Any) -> dict[str, Any]:
    return {"what": what, "count": 0, "total": 0, "source": "", "captures": [], "problem": "", **more}


SLOW = {"namespace": "team-a", "uid": "slow", "title": "my job"}


def show(page: Page, *answers: dict[str, Any]) -> None:
    """Opens the page of a service that gives one answer after the other, the last one again and again."""
    left = list(answers)

    def answer(route: Route) -> None:
        if "application/json" not in route.request.headers.get("accept", ""):
            return route.continue_()
        return route.fulfill(
            body=json.dumps(left.pop(0) if len(left) > 1 else left[0]), content_type="application/json"
        )

    page.route("**/opened", answer)
    page.goto("/opened")


def test_progress_is_shown(page: Page) -> None:
    show(page, {"items": [item("my job", count=3, total=8, source="rank3.json.gz")], "finished": False, "seconds": 1.5})
    expect(page.get_by_role("progressbar", name="Files of my job that were read")).to_have_js_property("value", 3)
    expect(page.locator("main")).to_contain_text("3 of 8 files")
    expect(page.locator("main")).to_contain_text("rank3.json.gz")
    assert find_serious(page) == []


def test_a_single_report_is_gone_to_when_it_is_there(page: Page) -> None:
    reading = {"items": [item("my job")], "finished": False, "seconds": 0.5}
    show(page, reading, {"items": [item("my job", captures=[SLOW])], "finished": True, "seconds": 2.0})
    expect(page).to_have_url(re.compile("/reports/team-a/slow$"))


def test_several_reports_are_listed_with_what_went_wrong(page: Page) -> None:
    items = [item("my job", captures=[SLOW]), item("other", problem="no *.json below other")]
    show(page, {"items": items, "finished": True, "seconds": 2.0})
    expect(page.get_by_role("link", name="Report of my job")).to_have_attribute("href", "/reports/team-a/slow")
    expect(page.get_by_role("alert")).to_have_text("no *.json below other")
    expect(page.get_by_role("status")).to_have_text("analyzed in 2.00 s")
