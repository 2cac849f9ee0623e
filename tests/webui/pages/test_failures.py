"""The page of what is away, half there or not for this person: it says so and what to do; so does its JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_store.base import StoreError
from fleetprof_webui.catalog.catalog import Catalog
from harness.memory_store import MemoryStore
from playwright.sync_api import Page, expect
from sqlalchemy.exc import OperationalError

from ..conftest import put_older_report

WHOLE = ("team-a", "slow")
COPY = ("team-d", "broken")
ADDRESS = "/reports/team-d/broken"


@pytest.fixture
def copy(shown: MemoryStore) -> Iterator[MemoryStore]:
    """The store, with a capture that the test may break."""
    prefix, other = keys.request_prefix(*WHOLE), keys.request_prefix(*COPY)
    for info in list(shown.list(prefix)):
        shown.put(other + info.key.removeprefix(prefix), shown.get(info.key))
    yield shown
    shown.delete([info.key for info in shown.list(other)])


def fail_store(*_: Any) -> Any:
    raise StoreError("secret address of the bucket", retryable=True)


def fail_database(*_: Any, **__: Any) -> Any:
    raise OperationalError("SELECT secret", {}, Exception("no route to the database"))


def expect_failure(page: Page, address: str, status: int, title: str, next_step: str, twin: str = "") -> None:
    """The page and its JSON twin say the same, and neither says more than people may know."""
    page.goto(address)
    alert = page.get_by_role("alert").first
    # Reading is tried again before it is given up.
    expect(alert).to_contain_text(title, timeout=30_000)
    expect(alert).to_contain_text(next_step)
    expect(page.get_by_role("navigation").first).to_be_visible()
    answered = page.request.get(twin or address, headers={"Accept": "application/json"})
    assert answered.status == status
    assert answered.headers["content-type"] == "application/problem+json"
    problem = answered.json()
    assert title in json.dumps(problem)
    assert next_step in problem["next_step"]
    assert "secret" not in answered.text() + page.content()


def test_while_the_store_is_down_a_report_says_so_and_comes_when_it_is_back(
    page: Page, shown: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shown, "head", fail_store)
        expect_failure(page, "/reports/team-a/slow", 503, "the object store does not answer", "try again")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".verdict-sentence")).to_contain_text("Rank 2")


def test_while_the_database_is_down_lists_say_so_and_reports_are_read(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Catalog, "fleet", fail_database)
    step = "reports can be read by their own address"
    expect_failure(page, "/fleet", 503, "the catalog's database does not answer", step)
    page.goto("/reports/team-a/slow")
    expect(page.locator(".verdict-sentence")).to_contain_text("Rank 2")


def test_when_the_session_ends_the_page_says_how_to_sign_in(page: Page) -> None:
    page.goto("/fleet")
    page.locator("tbody tr").first.wait_for()
    page.context.clear_cookies()
    page.get_by_role("link", name="Requests").click()
    expect(page.get_by_role("alert")).to_contain_text("fleetprof ui")
    assert page.locator("tbody tr").count() == 0
    assert page.request.get("/requests", headers={"Accept": "application/json"}).status == 401


@pytest.mark.parametrize(
    ("data", "message", "next_step"),
    [
        (b'{"schema_version": 1, "ranks": [{"rank": 0, "sou', "not a fleetprof report", ""),
        (b'{"schema_version": 99}', "upgrade", ""),
    ],
)
def test_a_report_that_cannot_be_read_says_why(
    page: Page, copy: MemoryStore, data: bytes, message: str, next_step: str
) -> None:
    put_older_report(copy, *COPY, data)
    expect_failure(page, ADDRESS, 422, message, next_step, f"{ADDRESS}/slices/overview")
    fetched = page.request.get(f"{ADDRESS}/files/report.json")
    assert fetched.body() == data


def test_missing_traces_spoil_no_report(page: Page, copy: MemoryStore) -> None:
    copy.delete([info.key for info in copy.list(f"{keys.request_prefix(*COPY)}ranks/")])
    page.goto(f"{ADDRESS}#downloads")
    expect(page.locator(".verdict-sentence")).to_contain_text("Rank 2")
    expect(page.locator("#downloads")).to_contain_text("report.json")
    expect(page.locator("#downloads")).not_to_contain_text("trace.json.gz")


def test_a_timeline_without_its_files_says_what_is_missing(page: Page, copy: MemoryStore) -> None:
    copy.delete([keys.rank_timeline_key(*COPY, 2)])
    page.goto(f"{ADDRESS}/timeline")
    expect(page.get_by_text(re.compile("Rank 2 has no events here"))).to_be_visible()
    copy.delete([keys.fleet_timeline_key(*COPY)])
    page.goto(f"{ADDRESS}/timeline?view=")
    expect(page.get_by_role("alert")).to_contain_text("The timeline cannot be shown")
    expect(page.get_by_role("alert")).to_contain_text("analyse the capture again")


def test_arguments_of_a_trace_that_is_not_stored_cannot_be_searched(page: Page, copy: MemoryStore) -> None:
    copy.delete([keys.trace_key(*COPY, 2)])
    page.goto(f"{ADDRESS}/timeline")
    page.get_by_label("Search the names of events").fill("stream 7")
    page.get_by_role("button", name="Search the arguments on rank 2").click()
    expect(page.get_by_text("The trace of rank 2 is not stored, so its arguments cannot be searched.")).to_be_visible()


@pytest.mark.parametrize(("at", "message"), [(0, "A part is missing"), (-40, "The list of what rank 2 ran is missing")])
def test_a_damaged_part_of_a_timeline_is_a_gap_that_says_so(
    page: Page, copy: MemoryStore, at: int, message: str
) -> None:
    key = keys.rank_timeline_key(*COPY, 2)
    whole = bytearray(copy.get(key))
    body = 28 + int.from_bytes(whole[8:12], "little")
    start = body if at == 0 else len(whole) + at
    whole[start : start + 40] = bytes(40)
    copy.put(key, bytes(whole))
    page.goto(f"{ADDRESS}/timeline")
    expect(page.get_by_text(re.compile(f"{message}: .*checksum"))).to_be_visible()
    expect(page.locator(".timeline-scroll canvas")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_report_is_printed_whole_and_light_without_its_controls(page: Page, theme: str) -> None:
    page.goto("/reports/team-c/many")
    page.locator(".verdict-sentence").wait_for()
    assert page.locator("#cost, #samples").count() > 0
    # What lies far below is there before a print begins, which waits for no answer.
    expect(page.locator(".section > .later")).to_have_count(0)
    expect(page.locator(".loading")).to_have_count(0)
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (".bar", ".contents", ".tools"):
        assert not any(place.is_visible() for place in page.locator(hidden).all())
    for section in ("findings", "ranks", "stragglers", "spread", "kernels", "communication", "recorded"):
        content = page.locator(f"#{section} > :not(header)").first
        expect(content).to_be_visible()
        expect(page.locator(f"#{section} .loading")).to_have_count(0)
    assert all(name.is_visible() for name in page.locator("#spread .rank-name").all())
    assert page.locator("#spread .rank-name").count() > 0
