"""Every control of every page does what its name says, and none is on a page without a test that names it."""

import json
import re
from pathlib import Path
from typing import Final

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, RankState
from fleetprof_webui.local import LocalSite
from harness.memory_store import MemoryStore
from playwright.sync_api import Browser, Page, expect

from .looking import PERFETTO, REPORT, STREAMS, open_whole, rows_of

ADDRESSES: Final = (
    "/fleet",
    "/fleet?compare=team-a/slow",
    "/fleet?text=nothing-has-this-name",
    "/fleet/team-a/Job/llama",
    "/requests",
    "/requests?capture=new",
    "/requests/team-b/failed",
    f"{REPORT}?rank=2",
    "/reports/team-c/loop",
    f"{STREAMS}?by=stream&kernel=compute gemm",
    f"{REPORT}/timeline",
    "/reports/team-c/loop/timeline",
    f'{REPORT}/timeline?view={{"version":1,"open":[2],"search":"cudaStreamSync"}}',
    "/diff?base=team-a/healthy&new=team-a/slow",
    "/diff",
    "/policies",
    "/policies/team-a/llama",
    "/whoami",
    "/there-is-no-such-page",
)
# Role and name of each control, and the test that uses it.
CONTROLS: Final = (
    ("link", ".*", "test_each_control_has_a_test_and_each_link_leads_somewhere"),
    ("button sort", ".*", "test_a_table_sorts_by_each_of_its_columns"),
    ("button facet", ".*", "test_each_filter_filters_and_is_taken_back"),
    ("button", r"Remove all filters", "test_each_filter_filters_and_is_taken_back"),
    ("button", r"(rank )?\d+|rank \d+ [▲▼] .*|All ranks", "test_a_rank_is_chosen_wherever_it_is_named"),
    ("button", r"Copy( the (YAML|command))?", "test_what_is_copied_stands_on_the_page"),
    ("button", r"New capture|Close", "test_the_form_of_a_capture_opens_and_closes"),
    ("button", r"Check", "test_a_request_is_checked_before_it_is_asked_for"),
    ("button", r"(Iteration|Busy|Exposed) .*, report of .*", "test_a_point_of_a_trend_opens_its_report"),
    ("button", r"Compare|Stop", "test_two_captures_of_a_workload_are_compared"),
    ("button", r"Open in Perfetto", "test_a_trace_opens_in_perfetto"),
    ("button", r"Sign out", "test_who_signs_out_sees_nothing"),
    ("button", r"Whole time", "test_the_whole_time_comes_back"),
    ("button", r"Whole time, .*", "test_the_way_into_the_picture_leads_back_out"),
    ("button", r"Pin .*", "test_a_track_is_hidden_and_pinned_and_back_undoes"),
    ("checkbox", r"GPU .*|main thread|thread .*|queued launches", "test_a_track_is_hidden_and_pinned_and_back_undoes"),
    ("button", r"Keys \( \? \)", "test_a_question_mark_lists_the_keys_which_can_be_kept_to_the_picture"),
    ("button", r"Open this part in Perfetto", "test_the_part_in_view_opens_in_perfetto"),
    ("checkbox", r"only failed \(\d+\)", "test_the_ledger_shows_only_those_that_failed"),
    ("checkbox", r"as a table", "test_the_heat_map_is_a_table_when_asked"),
    ("checkbox", r"only those", "test_kernels_are_searched_and_only_outliers_shown"),
    ("checkbox", r"Only the longest", "test_only_the_longest_are_drawn_when_asked"),
    ("checkbox", r"shapes of tensors|Python stacks|time by module|power and clocks of devices",
     "test_each_field_of_a_capture_is_in_its_yaml"),
    ("combobox", r"Theme", "test_the_theme_is_chosen_and_kept"),
    ("combobox", r"Order of ranks|Measure", "test_the_address_of_a_report_keeps_its_view"),
    ("combobox", r"Found by|Kind|Unit of the length", "test_each_field_of_a_capture_is_in_its_yaml"),
    ("combobox", r"Running job", "test_the_form_picks_from_running_jobs"),
    ("combobox", r"Ranks", "test_ranks_unfold_and_fold_and_the_late_and_the_median_stand_together"),
    ("combobox", r"Compare the launches of a kernel", "test_a_slow_stream_of_a_kernel_stands_out"),
    ("button", r"Launches of .*", "test_a_slow_stream_of_a_kernel_stands_out"),
    ("slider", r"Outliers from so many standard deviations", "test_the_address_of_a_report_keeps_its_view"),
    ("slider", r"Ranks|Network", "test_sliders_and_ticks_say_what_the_command_says"),
    ("checkbox", r"Rank \d+ as fast as .*|No wait for the data loader|All launches as one CUDA graph",
     "test_sliders_and_ticks_say_what_the_command_says"),
    ("slider", r"Group below \d+ %", "test_an_address_opens_the_same_view_again"),
    ("searchbox", r"Search workloads", "test_the_fleet_is_searched_filtered_sorted_and_compared"),
    ("searchbox", r"Search requests", "test_requests_are_searched"),
    ("searchbox", r"Search kernels", "test_kernels_are_searched_and_only_outliers_shown"),
    ("searchbox", r"Search the names of events", "test_the_next_event_that_a_search_finds_is_shown_and_chosen"),
    ("button", r"‹ Previous event|Next event ›", "test_the_next_event_that_a_search_finds_is_shown_and_chosen"),
    ("button", r".* · \d+ × · .*|Search it too", "test_the_search_says_where_it_looked_and_takes_a_rank_more"),
    ("spinbutton", r"\d+ other ranks with events:", "test_the_search_says_where_it_looked_and_takes_a_rank_more"),
    ("button", r"Search the arguments on rank \d+", "test_arguments_are_searched_in_the_trace_when_asked"),
    ("textbox", r"Name|Length|Namespace", "test_each_field_of_a_capture_is_in_its_yaml"),
    ("textbox", r"The same as YAML", "test_the_form_of_a_new_capture_writes_the_request_and_the_command"),
    ("application", r"Timeline", "test_keys_work_as_soon_as_the_page_is_there"),
    ("treegrid", r"Rank \d+", "test_the_tree_is_walked_by_keyboard"),
    ("application", r".*: arrows go from cell to cell.*", "test_rows_and_cells_are_chosen_by_keyboard"),
)  # fmt: skip
# Of the form of a capture: label, what is chosen (None: checked), and what the YAML says then.
FIELDS: Final = (
    ("Found by", "by labels", "matchLabels"),
    ("Kind", "RayJob", "kind: RayJob"),
    ("Name", "train-7", "name: train-7"),
    ("Length", "7", "iterations: 7"),
    ("Unit of the length", "milliseconds", "durationMillis"),
    ("Ranks", "these", "list"),
    ("Ranks", "N, spread over the nodes", "sample"),
    ("shapes of tensors", None, "Shapes"),
    ("Python stacks", None, "Stacks"),
    ("time by module", None, "ModuleTree"),
    ("power and clocks of devices", None, "DeviceMetrics"),
)
_LINE: Final = re.compile(
    r"^\s*- '?(button|link|textbox|searchbox|combobox|checkbox|slider|radio|tab|switch|spinbutton|menuitem|application"
    r'|treegrid)\b(?: "((?:[^"\\]|\\.)*)")?'
)


def find_controls(page: Page) -> set[tuple[str, str]]:
    """Role and name of all controls, as a screen reader has them; what sorts and what filters is told apart."""
    found = {
        (match[1], match[2] or "")
        for line in page.locator("body").aria_snapshot().splitlines()
        if (match := _LINE.match(line))
    }
    for kind in ("sort", "facet"):
        names = {" ".join(text.strip(" ↑↓").split()) for text in page.locator(f"button.{kind}").all_inner_texts()}
        found = {(f"button {kind}" if role == "button" and name in names else role, name) for role, name in found}
    return found


def test_each_control_has_a_test_and_each_link_leads_somewhere(page: Page) -> None:
    modules = Path(__file__).parent.rglob("test_*.py")
    tests = {name for one in modules for name in re.findall(r"^def (test_\w+)", one.read_text(), re.M)}
    unused = set(CONTROLS)
    unknown = set()
    followed: set[str] = set()
    for address in ADDRESSES:
        open_whole(page, address)
        follow_links(page, followed)
        for role, name in find_controls(page):
            known = {one for one in CONTROLS if one[0] == role and re.fullmatch(one[1], name)}
            unused -= known
            if not known:
                unknown.add(f"{role} {name!r} on {address}")
    assert not unknown, "name the test that uses it in CONTROLS"
    assert not unused, "no page has these any more"
    assert {test for _, _, test in CONTROLS} <= tests


def follow_links(page: Page, followed: set[str]) -> None:
    """The target of each link of this page is there, as far as it was not `followed` before."""
    for link in page.locator("a[href]").all():
        href = link.get_attribute("href") or ""
        if href.startswith("#"):
            assert page.locator(f"[id='{href[1:]}']").count() == 1, f"{href} on {page.url}"
        elif href.startswith("/") and (place := href.partition("#")[0]) not in followed:
            followed.add(place)
            # A timeline's twin are its files, of which the fleet's is the first.
            page_of = place.partition("?")[0]
            twin = f"{page_of}/fleet.bin" if page_of.endswith("/timeline") else place
            answered = page.request.get(twin, headers={"Accept": "application/json"})
            assert answered.ok, f"{href} on {page.url}: {answered.status}"


@pytest.mark.parametrize("address", ["/fleet", "/requests", "/requests/team-b/failed", REPORT])
def test_a_table_sorts_by_each_of_its_columns(page: Page, address: str) -> None:
    open_whole(page, address)
    for table in page.locator(".table-scroller").all():
        for head in table.locator("th", has=page.locator("button.sort")).all():
            before = head.get_attribute("aria-sort")
            head.get_by_role("button").click()
            expect(head).to_have_attribute(
                "aria-sort",
                {"ascending": "descending", "descending": "ascending"}.get(before or "", re.compile("scending")),
            )
            assert table.locator("[aria-sort]").count() == 1


@pytest.mark.parametrize("address", ["/fleet", "/requests"])
def test_each_filter_filters_and_is_taken_back(page: Page, address: str) -> None:
    open_whole(page, address)
    facets = page.locator("button.facet")
    rows = page.locator("main .table-scroller").first.locator("tbody tr")
    whole = rows.count()
    for name in facets.all_inner_texts():
        value, count = " ".join(name.split()[:-1]), int(name.split()[-1])
        page.get_by_role("button", name=f"{value} {count}", exact=True).first.click()
        expect(rows).to_have_count(count)
        pressed = page.locator("button.facet[aria-pressed=true]")
        expect(pressed).to_have_count(1)
        pressed.click()
        expect(rows).to_have_count(whole)
    page.goto(f"{address}?text=nothing-has-this-name")
    page.get_by_role("button", name="Remove all filters").click()
    expect(rows).to_have_count(whole)


def test_a_rank_is_chosen_wherever_it_is_named(page: Page) -> None:
    open_whole(page, REPORT)
    places = (
        page.locator("#ranks").get_by_role("button", name="rank 2", exact=True),
        page.locator("#spread").get_by_role("button", name="2", exact=True).first,
        page.locator("#kernels").get_by_role("button", name=re.compile("rank 2 ▲")).first,
    )
    for place in places:
        place.click()
        expect(page).to_have_url(re.compile(r"[?&]rank=2"))
        expect(page.locator("#kernels")).to_contain_text("rank 2 alone")
        page.get_by_role("button", name="All ranks").click()
        expect(page).not_to_have_url(re.compile("rank="))


@pytest.mark.parametrize("address", ["/requests?capture=new", "/requests/team-b/failed", REPORT])
def test_what_is_copied_stands_on_the_page(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_whole(page, address)
    buttons = page.get_by_role("button", name=re.compile("^Copy"))
    assert buttons.count() >= 1
    shown = page.evaluate(
        "document.body.innerText + [...document.querySelectorAll('textarea')].map((one) => one.value)"
    )
    for button in buttons.all():
        button.click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.split()
        assert " ".join(copied.split()) in " ".join(shown.split())
    expect(page.get_by_role("button", name="Copied").first).to_be_visible()


def test_the_form_of_a_capture_opens_and_closes(page: Page) -> None:
    page.goto("/requests")
    for closing in ("Close", "New capture"):
        page.get_by_role("button", name="New capture").click()
        expect(page.get_by_label("The same as YAML")).to_be_visible()
        page.get_by_role("button", name=closing, exact=True).click()
        expect(page.get_by_label("The same as YAML")).to_have_count(0)


def test_each_field_of_a_capture_is_in_its_yaml(page: Page) -> None:
    for label, value, written in FIELDS:
        page.goto("/requests?capture=new")
        field = page.get_by_label(label, exact=True)
        if value is None:
            field.check()
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(label=value)
        else:
            field.fill(value)
        expect(page.get_by_label("The same as YAML")).to_have_value(re.compile(written))
    page.get_by_label("Namespace", exact=True).fill("team-q")
    with page.expect_request("**/requests/check") as checked:
        page.get_by_role("button", name="Check").click()
    assert json.loads(checked.value.post_data or "")["namespace"] == "team-q"


def test_a_trace_opens_in_perfetto(page: Page) -> None:
    page.context.route(
        "https://ui.perfetto.dev/**", lambda route: route.fulfill(body=PERFETTO, content_type="text/html")
    )
    open_whole(page, "/reports/team-c/loop")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Open in Perfetto").click()
    opened.value.locator("#events").wait_for()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_who_signs_out_sees_nothing(browser: Browser, site: LocalSite) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.make_address())
    page.locator("tbody tr").first.wait_for()
    page.get_by_title("Who am I").click()
    page.get_by_role("button", name="Sign out").click()
    # It leads to the first page by itself.
    expect(page).to_have_url(re.compile("/fleet$"))
    expect(page.get_by_role("alert")).to_contain_text("fleetprof ui")
    context.close()


def test_the_ledger_shows_only_those_that_failed(page: Page, shown: MemoryStore) -> None:
    key = keys.ledger_key("team-b", "running")
    before = shown.get(key)
    ledger = msgspec.json.decode(before, type=Ledger)
    ledger.entries[1].state = RankState.FAILED
    try:
        shown.put(key, msgspec.json.encode(ledger))
        page.goto("/requests/team-b/running")
        rows = rows_of(page, "Ranks")
        expect(page.get_by_label("only failed (1)")).to_be_visible()
        expect(rows).to_have_count(4)
        page.get_by_label("only failed (1)").check()
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("failed")
    finally:
        shown.put(key, before)


def test_the_heat_map_is_a_table_when_asked(page: Page) -> None:
    page.goto(REPORT)
    section = page.locator("#iterations")
    section.get_by_label("as a table").check()
    expect(section.locator("table tbody tr")).to_have_count(4)
    section.get_by_label("as a table").uncheck()
    expect(section.locator(".heat-cells")).to_be_visible()


def test_requests_are_searched(page: Page) -> None:
    page.goto("/requests")
    rows = rows_of(page, "Requests")
    expect(rows.nth(3)).to_be_visible()
    page.get_by_label("Search requests").fill("healthy")
    expect(rows).to_have_count(1)
