"""The questions that people come with, each answered on GPU captures within three clicks from *Fleet*.

The first four are those of Hotline's study; typing is no click, and neither is scrolling.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from .timeline.views import tree

MOST_CLICKS: Final = 3


@dataclass
class Person:
    """Somebody who has *Fleet* open, and counts clicks."""

    page: Page
    clicks: list[str] = field(default_factory=list)

    def follow(self, name: str, inside: Locator | None = None) -> None:
        """Clicks the first link of this name."""
        self.click((inside or self.page).get_by_role("link", name=name).first)

    def click(self, place: Locator) -> None:
        self.clicks.append(place.inner_text().splitlines()[0])
        place.click()

    def open_late_job(self) -> None:
        self.follow("Rank 2 holds the job up")
        self.page.locator(".verdict-sentence").wait_for()

    def row_of(self, name: str) -> Locator:
        workloads = self.page.get_by_role("region", name="Workloads")
        return workloads.locator("tbody tr").filter(has=self.page.get_by_role("link", name=name, exact=True))

    def open_loop(self) -> None:
        self.click(self.row_of("loop").locator("a.verdict-cell"))
        self.page.locator(".verdict-sentence").wait_for()


def which_rank_is_slow(person: Person) -> None:
    person.open_late_job()
    expect(person.page.locator(".verdict-sentence")).to_contain_text("Rank 2")


def which_stage_takes_longest(person: Person) -> None:
    person.open_loop()
    person.click(person.page.get_by_role("link", name="Timeline", exact=True))
    longest = tree(person.page).and_(person.page.locator("[aria-level='2']")).filter(has_text="longest")
    expect(longest.first).to_contain_text("optimizer")


def which_operation_of_a_stage_takes_longest(person: Person) -> None:
    which_stage_takes_longest(person)
    person.click(tree(person.page).filter(has_text="backward"))
    longest = tree(person.page).and_(person.page.locator("[aria-level='3']")).filter(has_text="longest")
    expect(longest.first).to_contain_text("AddmmBackward")


def what_does_an_operation_launch(person: Person) -> None:
    person.open_loop()
    person.follow("aten::linear", person.page.get_by_role("region", name="Operators that launch"))
    expect(person.page.locator(".timeline-chosen")).to_contain_text("launches gemm")


def which_rank_and_why(person: Person) -> None:
    person.open_late_job()
    verdict = person.page.locator(".verdict")
    expect(verdict.locator(".verdict-sentence")).to_contain_text("the others wait for its")
    expect(verdict.locator(".next-step")).to_be_visible()


def what_does_the_gpu_wait_for(person: Person) -> None:
    person.open_loop()
    person.click(person.page.get_by_role("navigation").get_by_role("link", name="Idle", exact=True))
    causes = person.page.locator("#idle table").first
    expect(causes).to_be_in_viewport()
    expect(causes).to_contain_text("Data loading")


def did_my_change_help(person: Person) -> None:
    person.click(person.row_of("llama").get_by_role("link", name="llama", exact=True).last)
    person.page.wait_for_load_state("networkidle")
    person.click(person.page.get_by_role("button", name="Compare").first)
    person.follow("with this")
    expect(person.page.get_by_role("heading", name="Iterations became")).to_be_visible()


def which_team_wastes_most(person: Person) -> None:
    person.click(person.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Losses"))
    first = person.page.get_by_role("region", name="Sums").locator("tbody tr").first
    expect(first).to_contain_text("team-a")


def what_ran_on_that_node(person: Person) -> None:
    person.click(person.row_of("on-nodes").locator("a.verdict-cell"))
    person.follow("node-1")
    expect(person.page.get_by_role("button", name="node-1")).to_have_attribute("aria-pressed", "true")
    expect(person.page.get_by_role("region", name="Requests").locator("tbody tr")).to_contain_text(["on-nodes"])


# The question, and the clicks that its answer takes.
TASKS: Final[dict[Callable[[Person], None], int]] = {
    which_rank_is_slow: 1,
    which_stage_takes_longest: 2,
    which_operation_of_a_stage_takes_longest: 3,
    what_does_an_operation_launch: 2,
    which_rank_and_why: 1,
    what_does_the_gpu_wait_for: 2,
    did_my_change_help: 3,
    which_team_wastes_most: 1,
    what_ran_on_that_node: 2,
}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_question_is_answered_within_three_clicks(page: Page, task: Callable[[Person], None]) -> None:
    page.goto("/fleet")
    page.get_by_role("region", name="Workloads").locator("tbody tr").first.wait_for()
    person = Person(page)
    task(person)
    assert len(person.clicks) == TASKS[task] <= MOST_CLICKS, person.clicks
