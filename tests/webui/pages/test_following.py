"""A request that goes on is followed: its ranks, its stages, its stacks."""

import json

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, RankState
from harness.memory_store import MemoryStore
from playwright.sync_api import Page, Route, expect


def test_a_request_without_a_ledger_is_not_said_to_run(page: Page, shown: MemoryStore) -> None:
    key = keys.request_key("team-c", "lost")
    shown.put(key, shown.get(keys.request_key("team-a", "slow")))
    try:
        page.goto("/requests/team-c/lost")
        expect(page.get_by_text("no ledger: nobody has begun with it, or its ledger is lost")).to_be_visible()
        expect(page.get_by_text("Live")).to_have_count(0)
        expect(page.locator(".state-running")).to_have_count(0)
    finally:
        shown.delete([key])


def test_the_stacks_of_a_group_open_by_a_click(page: Page) -> None:
    page.goto("/requests/team-a/hung")
    groups = page.locator("section details")
    expect(groups.first.locator("ol")).to_be_visible()  # of the rank that the verdict names
    expect(groups.last.locator("ol")).to_be_hidden()
    groups.last.locator("summary").click()
    expect(groups.last.locator("ol")).to_be_visible()


def test_the_ledger_follows_a_capture(page: Page, shown: MemoryStore) -> None:
    key = keys.ledger_key("team-b", "running")
    before = shown.get(key)
    page.goto("/requests/team-b/running")
    expect(page.locator("[data-state=ASKED]")).to_have_count(4)
    expect(page.get_by_text("Live: each change is shown as it happens.")).to_be_visible()
    try:
        ledger = msgspec.json.decode(before, type=Ledger)
        ledger.entries[1].state = RankState.ARMED
        ledger.entries[2].state = RankState.UPLOADED
        shown.put(key, msgspec.json.encode(ledger))
        expect(page.locator("[data-state=UPLOADED]")).to_have_count(1)
        expect(page.locator("[data-state=ARMED]")).to_have_count(1)
    finally:
        shown.put(key, before)


def test_eight_tabs_follow_requests_and_the_next_one_opens(page: Page) -> None:
    # A browser opens six connections to one service; a stream of events in each tab would take them all.
    tabs = [page.context.new_page() for _ in range(7)]
    for tab in (page, *tabs):
        tab.goto("/requests/team-b/running")
        expect(tab.locator("[data-state=ASKED]")).to_have_count(4)
    expect(page.get_by_text("Live: each change is shown as it happens.")).to_be_visible()
    expect(tabs[0].get_by_text("because another tab gets the events")).to_be_visible()
    page.goto("/fleet")
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    # The next tab has the stream now.
    expect(tabs[0].get_by_text("Live: each change is shown as it happens.")).to_be_visible()
    for tab in tabs:
        tab.close()


def test_the_stages_of_a_request_appear_while_it_is_followed(page: Page) -> None:
    answers = 0

    def answer(route: Route) -> None:
        nonlocal answers
        if "application/json" not in route.request.headers.get("accept", ""):
            return route.continue_()
        response, answers = route.fetch(), answers + 1
        detail = response.json()
        if answers == 1:
            for stage in detail["stages"]:
                stage |= {"first_ns": None, "last_ns": None, "ranks": 0}
        return route.fulfill(response=response, body=json.dumps(detail))

    page.route("**/requests/team-b/running", answer)
    page.route("**/events", lambda route: route.abort())
    page.goto("/requests/team-b/running")
    expect(page.get_by_text("No rank was asked yet.")).to_be_visible()
    expect(page.locator("#stages svg")).to_be_visible()
