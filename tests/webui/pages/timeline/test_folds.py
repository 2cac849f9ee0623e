"""Ranks as rows that fold: what a folded one shows, what an open one has, which stand together."""

import re

from playwright.sync_api import Page, expect

from .views import LATE, open_timeline, wait_for_state


def test_ranks_unfold_and_fold_and_the_late_and_the_median_stand_together(page: Page) -> None:
    picture = open_timeline(page)
    box = picture.bounding_box()
    assert box
    page.mouse.click(box["x"] + 60, box["y"] + 24 + 11)
    wait_for_state(page, "%22open%22%3A%5B2%2C0%5D")
    page.mouse.click(box["x"] + 60, box["y"] + 24 + 11)
    wait_for_state(page, "%22open%22%3A%5B2%5D")
    page.get_by_role("combobox", name="Ranks").select_option("late")
    state = wait_for_state(page, "%22fold%22%3A%22late%22")
    assert state["open"][0] == LATE
    assert len(set(state["open"])) == 2


def test_a_folded_rank_shows_when_it_did_what(page: Page) -> None:
    picture = open_timeline(page, "/reports/team-c/loop/timeline")
    box = picture.bounding_box()
    assert box
    words = page.locator(".timeline-hover")
    found = []
    for moment in range(40):
        page.mouse.move(box["x"] + 150 + (box["width"] - 150) * (moment + 0.5) / 200, box["y"] + 24 + 11)
        found += re.findall("here mostly ([a-z, ]+)", words.inner_text())
    # The first fifth is one iteration, which by its truth waits for its batch before it computes and communicates.
    assert found[0] == "data loading"
    assert found.index("compute") < found.index("communication, exposed")


def test_stages_iterations_and_folded_ranks_say_what_they_are(page: Page) -> None:
    picture = open_timeline(page, "/reports/team-c/loop/timeline")
    box = picture.bounding_box()
    assert box
    words = page.locator(".timeline-hover")
    for down, said_of in ((24 + 11, "Rank 0"), (24 + 22 + 10, "iteration 2"), (24 + 22 + 20 + 10, "of iteration 2")):
        page.mouse.move(box["x"] + 150 + (box["width"] - 150) / 2, box["y"] + down)
        expect(words).to_contain_text(said_of)
    page.mouse.move(box["x"] + 150 + (box["width"] - 150) / 2, box["y"] + 24 + 11)
    expect(words).to_contain_text(re.compile(r"compute \d+(\.\d)? %"))
