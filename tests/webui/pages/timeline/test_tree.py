"""The tree grid below a timeline: keys walk it, waits have lines, and Hotline's four tasks take three clicks."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from .views import open_timeline, tree, wait_for_state


def test_the_tree_is_walked_by_keyboard(page: Page) -> None:
    open_timeline(page)
    grid = page.get_by_role("treegrid")
    rows = tree(page)
    grid.focus()
    page.keyboard.press("Home")
    expect(rows.nth(1)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowLeft")
    expect(rows.nth(1)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(grid).to_have_attribute("aria-activedescendant", "timeline-node-1")
    expect(rows.nth(2)).to_have_attribute("aria-level", "2")
    page.keyboard.press("Enter")
    assert wait_for_state(page, "%22end%22%3A[1-9]")["end"] > 0


def test_the_tree_names_the_wait_that_takes_longest(page: Page) -> None:
    open_timeline(page, "/reports/team-c/waits/timeline")
    tree(page).filter(has_text="backward × 3").click()
    longest = tree(page).and_(page.locator("[aria-level='3']")).filter(has_text="longest")
    expect(longest).to_contain_text("wait for gloo:all_reduce")
    children = tree(page).and_(page.locator("[aria-level='3']")).all()
    assert sum(int(re.findall(r"(\d+) %", row.inner_text())[-1]) for row in children) == pytest.approx(100, abs=4)


class Clicks:
    """A person who has a report open and counts."""

    def __init__(self, page: Page, report: str = "/reports/team-c/loop") -> None:
        self.page = page
        self.count = 0
        page.goto(report)
        page.locator(".verdict-sentence").wait_for()

    def click(self, place: Locator) -> None:
        place.click()
        self.count += 1

    def open_timeline(self) -> None:
        self.click(self.page.get_by_role("link", name="Timeline", exact=True))
        expect(tree(self.page).nth(1)).to_be_visible()

    def longest(self) -> Locator:
        """The first row of the tree that is marked as the longest of its like, below the iterations."""
        return tree(self.page).and_(self.page.locator("[aria-level='2'], [aria-level='3']")).filter(has_text="longest")


def test_hotline_which_rank_is_slow(page: Page) -> None:
    person = Clicks(page, "/reports/team-a/slow")
    expect(page.locator(".verdict-sentence")).to_contain_text("Rank 2")
    person.open_timeline()
    expect(page.get_by_role("treegrid", name="Rank 2")).to_be_visible()
    assert person.count <= 3


def test_hotline_the_longest_stage_and_the_longest_operation_in_it(page: Page) -> None:
    person = Clicks(page)
    person.open_timeline()
    stage = person.longest().first
    expect(stage).to_contain_text("optimizer")
    person.click(tree(page).filter(has_text="backward"))
    operation = person.longest().and_(page.locator("[aria-level='3']"))
    expect(operation).to_contain_text("AddmmBackward")
    assert person.count <= 3


def test_hotline_what_an_operation_launches(page: Page) -> None:
    person = Clicks(page)
    person.open_timeline()
    person.click(tree(page).filter(has_text="forward"))
    person.click(tree(page).filter(has_text="linear"))
    expect(page.locator(".timeline-chosen")).to_contain_text("launches gemm")
    assert person.count <= 3
