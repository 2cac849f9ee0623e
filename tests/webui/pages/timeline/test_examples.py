"""Findings and kernels lead into the timeline at an example, and the chosen event stays in view."""

import re

from playwright.sync_api import Page, expect

from .views import open_timeline, state_of, tree, wait_for_state


def test_a_finding_opens_the_timeline_at_its_example(page: Page) -> None:
    page.goto("/reports/team-c/loop")
    page.locator("#findings").get_by_role("link", name="An example in the timeline").first.click()
    state = wait_for_state(page, "%22mark%22%3A%5B")
    begin, end = state["mark"]
    assert state["start"] <= begin < end <= state["end"]
    assert end - begin > (state["end"] - state["start"]) / 10
    assert state["open"] == [0]
    page.go_back()
    expect(page).to_have_url(re.compile("/reports/team-c/loop$"))


def test_a_kernel_opens_the_timeline_at_one_of_its_launches(page: Page) -> None:
    page.goto("/reports/team-c/loop#kernels")
    page.locator("#kernels tbody .row-button").first.click()
    name = page.locator(".kernel-spread h3").inner_text()
    page.locator(".kernel-spread").get_by_role("link", name="An example in the timeline").click()
    state = wait_for_state(page, "%22chosen%22%3A%7B")
    assert state["search"] in name
    drawer = page.get_by_role("complementary", name="Chosen event")
    expect(drawer).to_contain_text(name)
    expect(drawer).to_contain_text("begins at")
    expect(drawer).to_contain_text("launched by")


def test_the_drawer_stays_in_view_until_it_is_closed(page: Page) -> None:
    open_timeline(page, "/reports/team-c/loop/timeline")
    tree(page).nth(2).click()
    tree(page).nth(3).click()
    wait_for_state(page, "%22chosen%22%3A%7B")
    drawer = page.get_by_role("complementary", name="Chosen event")
    for place in ("scrollTo(0, 0)", "scrollTo(0, document.body.scrollHeight)"):
        page.evaluate(place)
        expect(drawer).to_be_in_viewport()
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_have_count(0)
    assert state_of(page)["chosen"] is None
