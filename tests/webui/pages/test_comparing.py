"""The comparisons: captures of a job, reports of two jobs, a kernel's ranks and streams, points of a trend."""

import re

import pytest
from harness.browser import keep_picture
from playwright.sync_api import Page, expect

from .looking import REPORT, STREAMS, find_serious, rows_of


def test_a_point_of_a_trend_opens_its_report(page: Page) -> None:
    for measure in ("Iteration time", "Busy", "Exposed communication"):
        page.goto("/fleet/team-a/Job/llama")
        point = page.get_by_role("button", name=re.compile(f"^{measure} .*, report of")).first
        if measure == "Busy":
            point.press("Enter")
        else:
            point.click()
        expect(page.locator(".verdict-sentence")).to_contain_text("Rank 2")


def test_two_captures_of_a_workload_are_compared(page: Page) -> None:
    page.goto("/fleet/team-a/Job/llama")
    page.wait_for_load_state("networkidle")  # the day's charts move the table down
    page.get_by_role("button", name="Compare").first.click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Compare").first.click()
    page.get_by_role("link", name="with this").first.click()
    expect(page).to_have_url(
        re.compile(r"/diff\?base=team-a/\w+&new=team-a/\w+|/diff\?base=team-a%2F\w+&new=team-a%2F\w+")
    )
    titles = page.locator("main").get_by_role("link", name=re.compile("-name$"))
    first = titles.first.inner_text()
    page.get_by_role("link", name="Swap").click()
    expect(titles.last).to_have_text(first)
    expect(page.get_by_text("a change reads backwards")).to_be_visible()


def test_the_earlier_capture_is_before_whichever_was_chosen_first(page: Page) -> None:
    page.goto("/fleet/team-a/Job/llama")
    links = page.locator("#captures tbody tr").get_by_role("link").filter(has=page.locator("bdi"))
    newest, oldest = links.first.inner_text(), links.last.inner_text()
    for base, new in (("healthy", "slow"), ("slow", "healthy")):
        page.goto(f"/diff?base=team-a/{base}&new=team-a/{new}")
        sides = page.locator(".sides .panel")
        expect(sides.nth(0)).to_contain_text("captured")
        expect(sides.nth(0)).to_contain_text(oldest)
        expect(sides.nth(1)).to_contain_text(newest)
        expect(page.get_by_text("“Before” is the earlier capture.")).to_be_visible()


def test_a_report_is_compared_with_another_of_its_job_or_with_another_job(page: Page) -> None:
    page.goto(REPORT)
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page).to_have_url(re.compile(r"/fleet/team-a/Job/llama\?compare=team-a(/|%2F)\w+"))
    expect(page.get_by_role("link", name="with this").first).to_be_visible()
    page.get_by_role("link", name="another workload").click()
    expect(page.locator(".compare-bar")).to_contain_text("Comparing")
    page.get_by_role("link", name="with this").first.click()
    expect(page).to_have_url(re.compile(r"/diff\?base="))


def test_a_slow_stream_of_a_kernel_stands_out(page: Page) -> None:
    page.goto(f"{STREAMS}#kernels")
    section = page.locator("#kernels")
    table = section.get_by_role("region", name="Kernels")
    row = table.locator("tbody tr", has_text="gemm")
    row.get_by_role("button", name="Launches of gemm").focus()
    page.keyboard.press("Enter")
    expect(section).to_contain_text("1 rank with this kernel among the 8 longest")
    section.get_by_label("Compare the launches of a kernel").select_option("its streams")
    # The slow one takes 32 µs, the fast one 12 µs with a standard deviation of 1.41 µs.
    expect(row).to_contain_text("20 ▲ 14.1 σ")
    parts = page.get_by_role("region", name="One kernel by stream").locator("tbody tr")
    expect(parts).to_have_count(3)
    assert [part.locator("td").all_inner_texts()[:4] for part in parts.all()] == [
        ["All", "7", "144 µs", "20.6 µs"],
        ["20", "3", "96.0 µs", "32.0 µs"],
        ["7", "4", "48.0 µs", "12.0 µs"],
    ]
    expect(parts.locator(".box-plot .violin")).to_have_count(3)
    expect(parts.locator(".outlier")).to_have_text(["▲ 14.1 σ", "▼ 12.2 σ"])
    page.reload()
    expect(parts).to_have_count(3)
    page.get_by_label("only those").check()
    expect(table.locator("tbody tr")).to_have_count(1)
    section.get_by_role("button", name="Close").click()
    expect(parts).to_have_count(0)


def test_a_late_ranks_kernel_is_compared_with_the_other_ranks(page: Page) -> None:
    page.goto(f"{REPORT}?kernel=compute backward_0&sigma=6#kernels")
    parts = page.get_by_role("region", name="One kernel by rank").locator("tbody tr")
    expect(parts).to_have_count(5)
    expect(parts.locator(".box-plot rect")).to_have_count(5)
    expect(parts.locator(".box-plot .violin")).to_have_count(5)
    expect(parts.nth(3).locator(".outlier")).to_contain_text("▲")
    expect(parts.locator(".outlier")).to_have_count(1)


def test_kernels_are_searched_and_only_outliers_shown(page: Page) -> None:
    page.goto(f"{REPORT}#kernels")
    rows = page.get_by_role("region", name="Kernels").locator("tbody tr")
    expect(rows.first).to_be_visible()
    whole = rows.count()
    page.get_by_label("only those").check()
    expect(page).to_have_url(re.compile("outliers=only"))
    assert 0 < rows.count() <= whole
    page.get_by_label("only those").uncheck()
    page.get_by_label("Search kernels").fill("nothing-has-this-name")
    expect(page.get_by_text("No kernel has this in its name")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_comparison_is_a_picture_on_one_scale(page: Page, theme: str) -> None:
    page.goto("/diff?base=team-a/healthy&new=team-a/slow&order=given")
    bars = page.locator("#picture .stacked-row")
    expect(bars).to_have_count(2)
    wide = [
        sum(float(one.get_attribute("width") or 0) for one in bar.locator("rect:not(.edge)").all())
        for bar in bars.all()
    ]
    assert wide[0] / wide[1] == pytest.approx(10.35 / 14.28, rel=0.02)  # of the iterations
    expect(page.locator("#picture .box-plot")).to_have_count(2)
    keep_picture(page, f"diff-picture-{theme}")
    for width in (800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        keep_picture(page, f"diff-picture-{width}-{theme}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert find_serious(page) == []


def test_kernels_that_came_and_went_are_said_to_by_the_names_that_people_say(page: Page) -> None:
    for sides, fate in (
        ("base=team-a/slow&new=team-b/late", "vanished"),
        ("base=team-b/late&new=team-a/slow", "appeared"),
    ):
        page.goto(f"/diff?{sides}&order=given")
        row = rows_of(page, "Kernels").filter(has_text="NCCL AllReduce_Sum_bf16").first
        expect(row).to_contain_text(fate)
        expect(row.locator("bdi")).to_have_attribute("title", re.compile("^ncclDevKernel_"))
