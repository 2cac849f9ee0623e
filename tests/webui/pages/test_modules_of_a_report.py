"""The modules of a report: time beside memory, linked with each other, with lines of code and with the timeline."""

import pytest
from harness.browser import keep_picture
from playwright.sync_api import Locator, Page, expect

from .looking import find_serious, open_whole, rows_of

ADDRESS = "/reports/team-c/loop#modules"


def tree(page: Page, name: str) -> Locator:
    return page.get_by_role("tree", name=name)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("uid", ["loop", "waits"])
def test_what_is_marked_in_one_picture_is_marked_in_the_other_and_in_the_lines(
    page: Page, uid: str, theme: str
) -> None:
    open_whole(page, f"/reports/team-c/{uid}#modules")
    box = tree(page, "Modules by time").get_by_role("treeitem", name="Net.2.up")
    box.scroll_into_view_if_needed()
    box.hover()
    marked = page.locator('[role=treeitem][aria-selected="true"]')
    expect(marked).to_have_count(2)
    assert [one.get_attribute("aria-label") for one in marked.all()] == 2 * [
        "Net.2.up (Linear) · 9.00 ms, 9.0 % of the iteration's work · holds 64.0 MiB · "
        + ("70 % of what the peak allows · " if uid == "loop" else "")
        + "called at models/net.py:20"
    ]
    expect(page.locator("#modules li").first).to_contain_text("Of it in modules")
    row = rows_of(page, "Lines of code that call modules").filter(has_text="models/net.py:20")
    expect(row).to_have_attribute("data-selected", "true")
    keep_picture(page, f"modules-{uid}-{theme}")
    assert find_serious(page) == []


def test_arrows_go_along_the_tree_and_enter_opens_the_timeline_there(page: Page) -> None:
    open_whole(page, ADDRESS)
    tree(page, "Modules by time").get_by_role("treeitem").first.focus()
    for key, name in (
        ("ArrowDown", "Net.embed"), ("ArrowRight", "Net.0 "), ("ArrowDown", "Net.0.up"), ("ArrowRight", "Net.0.down"),
        ("ArrowUp", "Net.0 "), ("ArrowLeft", "Net.embed"), ("Home", "Net "),
    ):  # fmt: skip
        page.keyboard.press(key)
        label = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert label.startswith(name), (key, label)
    page.keyboard.press("Enter")
    page.get_by_text("Whole time").first.wait_for()
    assert "/reports/team-c/loop/timeline" in page.url


def test_a_report_without_modules_says_what_would_have_them(page: Page) -> None:
    page.goto("/reports/team-a/slow#modules")
    expect(page.locator("#modules")).to_contain_text("Capture iterations with ModuleTree")
    expect(tree(page, "Modules by time")).to_have_count(0)
