"""A person's use of the pages: links that keep a view, the keyboard, both renderers, a capture that goes on."""

import json
import re
from collections.abc import Callable

import pytest
from fleetprof_webui.local import LocalSite
from playwright.sync_api import Browser, Page, Route, expect

from .looking import PIXELS


def test_the_address_of_a_report_keeps_its_view(page: Page) -> None:
    page.goto("/reports/team-a/slow")
    page.get_by_label("Order of ranks").select_option("compute")
    page.get_by_role("button", name="rank 2", exact=True).click()
    page.locator("#iterations select").select_option("exposed_communication")
    page.get_by_label("Outliers from so many standard deviations").fill("5")
    expect(page).to_have_url(re.compile(r"\?ranks=compute&rank=2&measure=exposed_communication&sigma=5"))

    page.goto(page.url)
    expect(page.get_by_label("Order of ranks")).to_have_value("compute")
    expect(page.get_by_role("button", name="rank 2", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#iterations select")).to_have_value("exposed_communication")
    expect(page.get_by_text("Outliers from 5 σ")).to_be_visible()
    expect(page.locator("#kernels")).to_contain_text("rank 2 alone")


def test_the_fleet_is_searched_filtered_sorted_and_compared(page: Page) -> None:
    page.goto("/fleet")
    rows = page.get_by_role("region", name="Workloads").locator("tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("button", name="tier=train").click()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="tier=train").click()
    page.get_by_role("button", name="team-b").click()
    expect(page).to_have_url(re.compile("namespace=team-b"))
    expect(rows).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("bert")
    expect(rows).to_have_count(1)
    page.get_by_label("Search workloads").fill("")
    page.get_by_role("button", name="team-b").click()
    page.get_by_role("button", name="Exposed comm.").press("Enter")
    expect(page.get_by_role("columnheader", name="Exposed comm.")).to_have_attribute("aria-sort", "descending")

    page.get_by_role("link", name="Compare bert with another").click()
    page.get_by_role("row").filter(has_text="team-a").get_by_role("link", name="with this").click()
    expect(page).to_have_url(re.compile("/diff"))
    expect(page.get_by_role("heading", name=re.compile("reports|Iterations|change|few"))).not_to_have_count(0)


def test_the_keyboard_reaches_the_content_and_opens_a_report(page: Page) -> None:
    page.goto("/fleet")
    page.locator("tbody tr").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name=re.compile("Rank 2 holds the job up")).first.press("Enter")
    expect(page).to_have_url(re.compile("/reports/"))


def test_back_undoes_a_choice_in_a_report(page: Page) -> None:
    page.goto("/reports/team-a/slow")
    rank = page.get_by_role("button", name="rank 2", exact=True)
    rank.click()
    expect(rank).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(rank).to_have_attribute("aria-pressed", "false")


def test_rows_and_cells_are_chosen_by_keyboard(page: Page) -> None:
    page.goto("/reports/team-a/slow")
    page.get_by_text("As a table, with all measures").click()
    row = page.get_by_role("region", name="All measures by rank").locator("tbody tr").nth(2)
    row.press("Enter")
    expect(page).to_have_url(re.compile(r"rank=2"))

    cells = page.locator("#iterations .heat-cells")
    cells.press("ArrowDown")
    expect(cells.locator("output")).to_contain_text("rank 0")
    cells.press("ArrowDown")
    cells.press("ArrowRight")
    expect(cells.locator("output")).to_contain_text("rank 1, iteration")
    cells.press("Enter")
    expect(page).to_have_url(re.compile(r"rank=1"))


def test_the_keyboard_goes_on_in_the_page_that_a_link_opened(page: Page) -> None:
    page.goto("/fleet/team-a/Job/llama")
    page.get_by_role("link", name="healthy-name").press("Enter")
    page.locator(".verdict-sentence").wait_for()
    expect(page.locator("main")).to_be_focused()


@pytest.mark.parametrize(("address", "choose"), [
    ("/fleet", lambda page: page.locator("button.facet").first.click()),
    ("/requests", lambda page: page.locator("button.facet").first.click()),
    ("/fleet/team-a/Job/llama", lambda page: page.get_by_role("button", name="Compare").first.click()),
])  # fmt: skip
def test_back_undoes_a_choice_in_a_list(page: Page, address: str, choose: Callable[[Page], None]) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    choose(page)
    expect(page).to_have_url(re.compile(r"\?"))
    page.go_back()
    expect(page).to_have_url(re.compile(f"{address}$"))


def test_the_theme_is_chosen_and_kept(page: Page) -> None:
    page.goto("/fleet")
    background = "getComputedStyle(document.body).backgroundColor"
    page.get_by_label("Theme").select_option("dark")
    assert page.evaluate(background) == "rgb(20, 23, 28)"
    page.reload()
    expect(page.get_by_label("Theme")).to_have_value("dark")
    assert page.evaluate(background) == "rgb(20, 23, 28)"


def test_few_ranks_are_drawn_as_svg(page: Page) -> None:
    page.goto("/reports/team-a/slow")
    cells = page.locator(".heat-cells svg[data-renderer=svg] rect")
    expect(cells).to_have_count(4 * 6)
    assert len(set(cells.evaluate_all("cells => cells.map(cell => cell.getAttribute('fill'))"))) > 4
    bars = page.locator(".bar-row")
    expect(bars).to_have_count(4)
    assert page.locator("canvas").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_thousand_ranks_are_drawn_on_canvas_and_scroll(page: Page, theme: str) -> None:
    page.goto("/reports/team-c/many?rank=637")
    skyline = page.locator(".skyline canvas[data-renderer=canvas]")
    skyline.wait_for()
    page.wait_for_timeout(200)
    drawn = skyline.evaluate(PIXELS)
    assert drawn["drawn"] > 0.5
    assert drawn["colors"] > 3
    bars = page.locator(".bar-row")
    expect(page.get_by_role("button", name="rank 637", exact=True)).to_be_visible()
    assert bars.count() < 60

    heat = page.locator(".heat-cells canvas[data-renderer=canvas]")
    heat.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    assert heat.evaluate(PIXELS)["colors"] > 5


def test_samples_of_the_late_rank_come_first_and_are_read_at_the_pointer(page: Page) -> None:
    page.goto("/reports/team-c/sampled#samples")
    power = page.get_by_role(
        "group", name=re.compile("^Power, W: rank 2 · late, rank 0, rank 1, rank 3, from 570 W to 600 W")
    )
    expect(power).to_be_visible()
    expect(
        page.get_by_role("group", name=re.compile("^Throttled by power, %: rank 2 · late, from 0 % to 100 %"))
    ).to_be_visible()
    box = power.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 20)
    # All charts of the page read at one time.
    values = page.locator("#samples .u-legend .u-value")
    expect(values.filter(has_text="580 W")).to_have_count(1)
    expect(values.filter(has_text="100 %")).to_have_count(1)


def test_the_verdict_says_what_was_sampled_and_where_the_late_rank_runs(page: Page) -> None:
    page.goto("/reports/team-c/sampled")
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("its GPU, which is throttled by power, more than its peers")
    expect(verdict).not_to_contain_text("DeviceMetrics")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("button", name="rank 2", exact=True))
    expect(row).to_contain_text("▲ late")
    expect(row).to_contain_text("node-1")


def test_the_late_rank_of_a_thousand_is_found_by_order(page: Page) -> None:
    page.goto("/reports/team-c/many?ranks=compute")
    first = page.locator(".bar-row").first
    expect(first).to_contain_text("rank 637")


def test_names_of_a_trace_are_text_and_nothing_else(page: Page) -> None:
    page.goto("/reports/team-c/hostile#kernels")
    name = page.locator("#kernels bdi", has_text="onerror").first
    expect(name).to_contain_text("\ufffdgnp.exe")
    assert page.locator("main img").count() == 0
    assert page.title() != "1"


def test_a_report_without_device_work_has_no_empty_tables_of_it(page: Page) -> None:
    page.goto("/reports/team-c/without-devices")
    contents = page.get_by_role("navigation", name="Sections of the report")
    expect(contents.get_by_role("link", name="Communication")).to_be_visible()
    expect(contents.get_by_role("link", name="Kernels")).to_have_count(0)
    expect(page.locator("#kernels, #launches")).to_have_count(0)


def test_launches_show_both_savings(page: Page) -> None:
    page.goto("/reports/team-a/slow#launches")
    table = page.get_by_role("region", name="Launches by rank")
    expect(table.get_by_role("columnheader", name="Graph saving")).to_be_visible()
    expect(table.get_by_role("columnheader", name="Maximum shift")).to_be_visible()


def test_a_captures_name_leads_to_its_report_and_its_state_to_the_request(page: Page) -> None:
    page.goto("/fleet/team-a/Job/llama")
    row = page.get_by_role("row").filter(has_text="healthy-name")
    expect(row.get_by_role("link", name="healthy-name")).to_have_attribute("href", "/reports/team-a/healthy")
    expect(row.get_by_role("link", name="Complete")).to_have_attribute("href", "/requests/team-a/healthy")


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("/reports/team-a/absent", "see how far its capture is"),
        ("/fleet?text=nothing-has-this-name", "Remove all filters"),
        ("/diff", "A comparison needs two reports"),
        ("/fleet/team-a/Job/absent", "see what there is"),
    ],
)
def test_where_nothing_is_the_page_says_what_to_do(page: Page, address: str, wanted: str) -> None:
    page.goto(address)
    expect(page.get_by_text(wanted).first).to_be_visible()


def test_a_stranger_is_told_how_to_sign_in(browser: Browser, site: LocalSite) -> None:
    context = browser.new_context()
    stranger = context.new_page()
    stranger.goto(f"http://127.0.0.1:{site.port}/fleet")
    expect(stranger.get_by_role("alert")).to_contain_text("fleetprof ui")
    assert "llama" not in stranger.content()
    context.close()


def test_filters_are_folded_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/fleet?namespace=team-b")
    facet = page.get_by_role("button", name=re.compile("^team-a"))
    fold = page.get_by_role("button", name="Filters: team-b")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(facet).to_be_hidden()
    fold.click()
    expect(facet).to_be_visible()
    page.get_by_role("button", name="Hide filters").click()
    expect(facet).to_be_hidden()


def test_a_slice_says_how_many_rows_it_leaves_out(page: Page) -> None:
    def cut(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(response.json() | {"cut": 7}))

    page.route("**/slices/*", lambda route: route.continue_() if "overview" in route.request.url else cut(route))
    page.goto("/reports/team-a/slow")
    for section, row in (
        ("idle", "iterations"), ("ranks", "ranks"), ("iterations", "ranks"), ("spread", "ranks"), ("stages", "places"),
        ("communication", "rows"), ("launches", "ranks"), ("memory", "devices"), ("modules", "modules"),
        ("whatif", "scenarios"),
    ):  # fmt: skip
        page.locator(f"#{section}").scroll_into_view_if_needed()
        expect(page.locator(f"#{section}")).to_contain_text(f"7 {row} more in report.json alone")
