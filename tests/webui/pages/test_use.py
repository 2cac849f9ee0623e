"""A person's use of the pages: links that keep a view, the keyboard, both renderers, a capture that goes on."""

import json
import re
from collections.abc import Callable
from io import BytesIO

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, RankState
from fleetprof_webui.local import LocalSite
from harness.memory_store import MemoryStore
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from .looking import PIXELS

# Of the last day: where its axis begins and ends, where the marks are, where the lines of each chart are; px.
AXIS = """() => {
    const place = (line) => Number(line.getAttribute('x1'));
    const grid = document.querySelector('#day .lines .grid');
    const charts = [...document.querySelectorAll('#day svg.lines')];
    return {
        from: place(grid),
        to: Number(grid.getAttribute('x2')),
        marks: [...document.querySelectorAll('.day-mark circle')].map((mark) => Number(mark.getAttribute('cx'))),
        lines: charts.map((chart) => [...chart.querySelectorAll('.day-mark-line')].map(place)),
    };
}"""


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


def test_the_stacks_of_a_group_open_by_a_click(page: Page) -> None:
    page.goto("/requests/team-a/hung")
    groups = page.locator("section details")
    expect(groups.first.locator("ol")).to_be_visible()  # of the rank that the verdict names
    expect(groups.last.locator("ol")).to_be_hidden()
    groups.last.locator("summary").click()
    expect(groups.last.locator("ol")).to_be_visible()


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


def test_names_of_a_trace_are_text_and_nothing_else(page: Page) -> None:
    page.goto("/reports/team-c/hostile#kernels")
    name = page.locator("#kernels bdi", has_text="onerror").first
    expect(name).to_contain_text("\ufffdgnp.exe")
    assert page.locator("main img").count() == 0
    assert page.title() != "1"


def test_the_form_of_a_new_capture_writes_the_request_and_the_command(page: Page) -> None:
    page.goto("/requests")
    page.get_by_role("button", name="New capture").click()
    expect(page).to_have_url(re.compile("capture=new"))
    page.get_by_label("Kind", exact=True).select_option("PyTorchJob")
    page.get_by_label("Name", exact=True).fill("llama")
    page.get_by_label("Ranks", exact=True).select_option("every")
    page.get_by_label("N", exact=True).fill("8")
    page.get_by_label("Python stacks").check()
    page.get_by_label("Namespace", exact=True).fill("team-a")
    yaml = page.get_by_label("The same as YAML")
    expect(yaml).to_have_value(
        re.compile(r"kind: PyTorchJob\n +name: llama\n +ranks:\n +every: 8\n(.*\n)+ +collect: \[Stacks\]")
    )
    expect(page.get_by_text("fleetprof capture -f capture.yaml")).to_be_visible()
    # What a person wrote stands until the form changes.
    yaml.fill("written by hand")
    expect(yaml).to_have_value("written by hand")
    page.get_by_label("Length", exact=True).fill("7")
    expect(yaml).to_have_value(re.compile("iterations: 7"))


def test_a_capture_is_asked_for_again_with_its_own_request(page: Page) -> None:
    page.goto("/requests?capture=new&repeat=team-b/failed")
    expect(page.get_by_label("The same as YAML")).to_have_value(re.compile("app: gpt"))
    expect(page.get_by_label("Kind", exact=True)).to_have_count(0)


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


def test_a_workload_shows_its_last_day(page: Page) -> None:
    page.goto("/fleet/team-a/Job/llama")
    day = page.locator("#day")
    expect(day.get_by_role("img", name="GPU SM active of the last day: 60 % to 90 %")).to_be_visible()
    expect(day.get_by_role("img", name="Iteration of the last day: 210 ms to 210 ms")).to_be_visible()
    assert day.locator("polyline").count() == 3  # a pause is no line


def test_alerts_and_policies_are_marked_on_a_workloads_last_day(page: Page) -> None:
    page.goto("/fleet/team-a/Job/llama")
    strip = page.locator("#day").get_by_role("group", name="Alerts and policies of the last day")
    captured = strip.get_by_role("link", name="told: Captured: Complete")
    suppressed = strip.get_by_role("link", name="told: Suppressed: Cooldown (3 times)")
    expect(captured).to_have_attribute("href", "/reports/team-a/slow")
    expect(suppressed).to_have_attribute("href", "/policies/team-a/starved")
    expect(strip.get_by_role("link")).to_have_count(2)  # what was more than a day ago is none

    # A quarter and a half of the day are a quarter and a half of the axis, in the strip as in each chart.
    axis = page.evaluate(AXIS)
    shares = [(at - axis["from"]) / (axis["to"] - axis["from"]) for at in axis["marks"]]
    assert shares == pytest.approx([0.25, 0.5], abs=0.002)
    assert axis["lines"] == [pytest.approx(axis["marks"])] * 2
    box = captured.locator("circle").bounding_box()
    assert box
    middle = Image.open(BytesIO(page.screenshot(clip=box))).convert("RGB").getpixel((8, 8))
    assert middle == (202, 135, 0), "a capture is filled"

    captured.focus()
    sentence = page.locator(".day-marks > p")
    expect(sentence).to_contain_text("the alert FleetprofLowUtilization fires. It waits for data.")
    page.keyboard.press("Tab")
    expect(suppressed).to_be_focused()
    expect(sentence).to_contain_text("the job was captured 600 s ago")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Time by rank")).to_be_visible()


def test_a_request_is_checked_before_it_is_asked_for(page: Page) -> None:
    page.goto("/requests?capture=new")
    page.get_by_label("Name", exact=True).fill("llama")
    page.get_by_label("Namespace", exact=True).fill("team-a")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Checked by: this service.")).to_be_visible()
    page.get_by_label("The same as YAML").fill("kind: ProfileRequest")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("spec")


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
