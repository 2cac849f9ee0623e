"""The drawer of the chosen event, sums of the measured time and tracks, on recorded GPU traces of four ranks."""

import re

from playwright.sync_api import Page, expect

from ..looking import find_serious
from .views import TIMELINE, open_timeline, wait_for_state

COLLECTIVE = f"{TIMELINE}?find=ncclDevKernel_AllReduce&rank=3"


def test_a_collective_shows_who_came_last_in_its_group_and_leads_there(page: Page) -> None:
    page.goto(COLLECTIVE)
    drawer = page.get_by_role("complementary", name="Chosen event")
    group = drawer.get_by_role("group", name="The same collective on other ranks")
    expect(group).to_contain_text("Rank 2 came last")
    expect(group).to_contain_text("of tp_2")
    expect(group.get_by_role("button")).to_have_text(["rank 3", "rank 2"])
    expect(drawer).to_contain_text("Process Group Ranks")
    assert find_serious(page) == []
    group.get_by_role("button", name="rank 2").click()
    state = wait_for_state(page, "%22chosen%22%3A%7B%22rank%22%3A2")
    assert state["open"] == [3, 2]
    expect(drawer).to_contain_text("rank 2, GPU 0")
    expect(drawer).to_contain_text("NCCL AllReduce_Sum_bf16_RING_LL")
    drawer.get_by_role("button", name="cudaLaunchKernelExC").click()
    expect(drawer).to_contain_text("launches NCCL")
    drawer.get_by_role("button", name="All arguments").click()
    expect(drawer).to_contain_text("correlation")


def test_what_ran_in_the_measured_time_is_summed(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("m")
    sums = page.get_by_role("region", name="Measured time")
    expect(sums.get_by_role("table", name="By class")).to_contain_text("compute")
    expect(sums.get_by_role("table", name="By stream and thread")).to_contain_text("stream 8")
    sums.get_by_role("table", name="By name").get_by_role("button", name="backward_0").click()
    expect(page.get_by_label("Search the names of events")).to_have_value("backward_0")
    whole = wait_for_state(page, "%22mark%22")["mark"]
    page.locator("#timeline-picture").focus()
    page.keyboard.press("]")
    assert wait_for_state(page, f"%22mark%22%3A%5B{whole[0]}%2C(?!{whole[1]}%5D)")["mark"][0] == whole[0]
    page.go_back()
    expect(sums).to_have_count(0)
    page.locator("#timeline-picture").focus()
    page.keyboard.press("m")
    sums.get_by_role("button", name="Clear").click()
    expect(sums).to_have_count(0)


def test_a_track_is_hidden_and_pinned_and_back_undoes(page: Page) -> None:
    open_timeline(page)
    page.get_by_text("Tracks", exact=True).click()
    stream = page.get_by_role("checkbox", name=re.compile("stream 8$"))
    expect(page.get_by_role("checkbox", name="queued launches")).to_be_checked()
    stream.uncheck()
    wait_for_state(page, "%22hidden%22%3A%5B%222.t")
    page.go_back()
    expect(stream).to_be_checked()
    pin = page.get_by_role("button", name=re.compile("^Pin .*stream 8 of rank 2$"))
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "true")


def test_the_way_into_the_picture_leads_back_out(page: Page) -> None:
    page.goto(COLLECTIVE)
    way = page.get_by_role("navigation", name="Zoom")
    page.get_by_role("complementary", name="Chosen event").get_by_role("button", name="cudaLaunchKernelExC").click()
    expect(way.get_by_role("button")).not_to_have_count(1)
    way.get_by_role("button", name="Whole time").click()
    expect(page).not_to_have_url(re.compile("%22end%22"))
