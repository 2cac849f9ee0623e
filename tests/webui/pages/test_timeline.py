"""The timeline of a capture in a real Chromium: its drawing, keys and pointer, its address, Hotline's four tasks."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from harness.browser import keep_picture
from playwright.sync_api import Locator, Page, expect

from .test_pages import find_serious
from .test_use import PIXELS

# Answers as Perfetto's page does, and shows the trace that it was given.
PERFETTO = """<!doctype html><script>
addEventListener('message', ({data, source, origin}) => {
    if (data === 'PING') return source.postMessage('PONG', origin);
    const text = document.createElement('pre');
    text.id = 'events';
    text.textContent = new TextDecoder().decode(data.perfetto.buffer);
    document.body.append(text);
});
</script>"""
TIMELINE = "/reports/team-a/slow/timeline"
LATE = 2


def open_timeline(page: Page, address: str = TIMELINE) -> Locator:
    """The picture, when all of it is there."""
    page.goto(address)
    picture = page.locator(".timeline-scroll canvas[data-loading=false]")
    picture.wait_for()
    expect(picture).not_to_have_attribute("data-rectangles", "0")
    return picture


def state_of(page: Page) -> dict[str, Any]:
    """What the address says is shown."""
    found: dict[str, Any] = json.loads(parse_qs(urlsplit(page.url).query)["view"][0])
    return found


def wait_for_state(page: Page, pattern: str) -> dict[str, Any]:
    """The state as soon as the address matches."""
    expect(page).to_have_url(re.compile(pattern))
    return state_of(page)


def wait_for_rest(page: Page, before: dict[str, Any]) -> dict[str, Any]:
    """The state when it is no longer `before`, nor on its way."""
    expect(page).not_to_have_url(re.compile(re.escape(f"%22end%22%3A{json.dumps(before['end'])}%2C")))
    page.wait_for_timeout(300)
    return state_of(page)


def tree(page: Page) -> Locator:
    """Rows of the tree grid below the picture."""
    return page.get_by_role("treegrid").get_by_role("row")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_late_rank_is_drawn_at_once_and_axe_finds_nothing_serious(page: Page, theme: str) -> None:
    picture = open_timeline(page)
    assert state_of(page)["open"] == [LATE]
    expect(picture).to_have_attribute("aria-label", re.compile("4 ranks over .*; late: rank 2"))
    drawn = picture.evaluate(PIXELS)
    assert drawn["drawn"] == 1
    assert drawn["colors"] > 20
    background = picture.evaluate("canvas => [...canvas.getContext('2d').getImageData(600, 2, 1, 1).data]")
    assert background[:3] == ([20, 23, 28] if theme == "dark" else [255, 255, 255])
    keep_picture(page, f"timeline-{theme}")
    assert find_serious(page) == []


def test_keys_work_as_soon_as_the_page_is_there(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("w")
    near = wait_for_state(page, "%22start%22%3A[1-9]")
    page.keyboard.press("d")
    right = wait_for_rest(page, near)
    length = near["end"] - near["start"]
    assert right["start"] == pytest.approx(near["start"] + length / 10)
    assert right["end"] - right["start"] == pytest.approx(length)
    page.keyboard.press("a")
    page.keyboard.press("w")
    page.keyboard.press("s")
    back = wait_for_rest(page, right)
    assert (back["start"], back["end"]) == pytest.approx((near["start"], near["end"]), abs=1)

    page.keyboard.press("/")
    expect(page.get_by_label("Search the names of events")).to_be_focused()
    page.keyboard.type("no such name")
    expect(page.get_by_text("No event has such a name.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search the names of events")).to_have_value("")


def test_no_view_begins_before_the_first_event_or_ends_after_the_last(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("w")
    near = wait_for_state(page, "%22start%22%3A[1-9]")
    for _ in range(4):
        page.keyboard.press("a")
    left = wait_for_rest(page, near)
    assert left["start"] == 0
    page.keyboard.press("s")
    whole = wait_for_rest(page, left)
    page.keyboard.press("s")
    page.keyboard.press("d")
    page.wait_for_timeout(300)
    assert (state_of(page)["start"], state_of(page)["end"]) == (0, whole["end"])


def test_a_question_mark_lists_the_keys_which_can_be_kept_to_the_picture(page: Page) -> None:
    open_timeline(page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys of the timeline")
    expect(keys.get_by_role("rowheader", name="W S")).to_be_visible()
    assert find_serious(page) == []
    keys.get_by_label("Keys work anywhere").uncheck()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    page.get_by_role("application").focus()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    keys.get_by_role("button", name="Close").click()
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Keys ( ? )").click()
    expect(keys).to_be_visible()


def test_a_click_chooses_arrows_walk_and_escape_lets_go(page: Page) -> None:
    picture = open_timeline(page)
    choose_widest(page, picture)
    first = wait_for_state(page, "%22chosen%22%3A%7B")["chosen"]
    expect(page.locator(".timeline-chosen")).to_contain_text(f"rank {LATE}")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(100)
    assert state_of(page)["chosen"]["start"] > first["start"]
    page.keyboard.press("Escape")
    wait_for_state(page, "%22chosen%22%3Anull")


def test_what_lies_under_the_pointer_is_told_and_a_brush_measures(page: Page) -> None:
    picture = open_timeline(page)
    x, y = choose_widest(page, picture, click=False)
    page.mouse.move(x, y)
    expect(page.locator(".timeline-hover")).to_contain_text("times on rank 2")
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(x + 200, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    start, end = wait_for_state(page, "%22mark%22%3A%5B")["mark"]
    assert end > start


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


def test_the_colours_are_named_beside_the_picture(page: Page) -> None:
    open_timeline(page)
    legend = page.get_by_role("list", name="Colours").get_by_role("listitem")
    expect(legend).to_have_count(8)
    expect(legend.nth(1)).to_have_text("communication, exposed")
    swatches = [one.evaluate(PIXELS)["colors"] for one in legend.locator("canvas").all()]
    assert swatches[0] == 1
    assert all(colors > 1 for colors in swatches[1:])


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


def test_an_address_opens_the_same_view_again(page: Page) -> None:
    picture = open_timeline(page)
    choose_widest(page, picture)
    wait_for_state(page, "%22chosen%22%3A%7B")
    page.get_by_role("application").focus()
    page.keyboard.press("m")
    wait_for_state(page, "%22mark%22%3A%5B")
    page.get_by_label(re.compile("Group below")).fill("12")
    before = wait_for_state(page, "%22group%22%3A12")
    caption = page.locator(".timeline-chosen").inner_text()
    pixels = open_timeline(page, page.url).evaluate(PIXELS)
    assert state_of(page) == before
    expect(page.locator(".timeline-chosen")).to_have_text(caption, use_inner_text=True)
    assert open_timeline(page, page.url).evaluate(PIXELS) == pixels


def test_the_minimap_shows_the_whole_time_and_moves_the_view(page: Page) -> None:
    open_timeline(page)
    bar = page.get_by_role("scrollbar", name="Part of the whole time that is in view")
    assert bar.evaluate(PIXELS)["colors"] > 5
    page.get_by_role("application").focus()
    for _ in range(6):
        page.keyboard.press("w")
    near = wait_for_state(page, "%22end%22%3A[1-9]")
    expect(bar).to_have_attribute("aria-valuenow", "50")
    box = bar.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 10)
    right = wait_for_rest(page, near)
    assert right["start"] > near["start"]
    assert right["end"] - right["start"] == pytest.approx(near["end"] - near["start"])
    expect(bar).not_to_have_attribute("aria-valuenow", "50")
    # Taken hold of, the window follows the pointer.
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 10, steps=3)
    page.mouse.up()
    left = wait_for_rest(page, right)
    assert left["start"] < right["start"]
    bar.focus()
    page.keyboard.press("Home")
    first = wait_for_rest(page, left)
    assert first["start"] == 0


def test_only_the_longest_are_drawn_when_asked(page: Page) -> None:
    picture = open_timeline(page)
    all_of_them = int(picture.get_attribute("data-rectangles") or 0)
    page.get_by_role("application").focus()
    page.keyboard.press("l")
    expect(page.get_by_label("Only the longest")).to_be_checked()
    wait_for_state(page, "%22longest%22%3Atrue")
    assert 0 < int(picture.get_attribute("data-rectangles") or 0) < all_of_them


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


def test_names_of_events_are_text_and_nothing_else(page: Page) -> None:
    picture = open_timeline(page, "/reports/team-c/hostile/timeline")
    assert picture.evaluate(PIXELS)["colors"] > 5
    page.get_by_label("Search the names of events").fill("onerror")
    found = page.get_by_role("list", name="Names found").get_by_role("button").first
    expect(found).to_contain_text("\\u202Egnp.exe")
    page.get_by_label("Search the names of events").fill("longlong")
    expect(found).to_contain_text("…")
    assert len(found.inner_text()) < 100
    page.get_by_label("Search the names of events").fill("nul")
    expect(found).to_contain_text("nul\\u0000\\u2067")
    assert page.locator("main img").count() == 0
    assert page.title() != "1"


def test_the_search_says_where_it_looked_and_takes_a_rank_more(page: Page) -> None:
    open_timeline(page)
    page.get_by_label("Search the names of events").fill("cudaStreamSynchronize")
    found = page.get_by_role("list", name="Names found").get_by_role("button").first
    expect(page.get_by_text("Searched: all events of the open rank 2")).to_be_visible()
    count = re.search(r"(\d+) ×", found.inner_text())
    assert count
    page.get_by_role("button", name="Next event").click()
    expect(page.locator(".timeline-chosen")).to_contain_text(f"{count[1]} times on rank 2")
    page.get_by_label("3 other ranks with events").fill("1")
    page.get_by_role("button", name="Search it too").click()
    expect(page.get_by_text("Searched: all events of the open ranks 2, 1")).to_be_visible()
    expect(found).to_contain_text(f"rank 2: {count[1]}, rank 1: ")


def test_the_line_of_code_that_the_verdict_names_is_found(page: Page) -> None:
    open_timeline(page, "/reports/team-c/hostile/timeline")
    expect(page.locator(".timeline-verdict")).to_contain_text("dataset.py:41")
    page.get_by_label("Search the names of events").fill("__getitem__")
    line = page.get_by_role("list", name="Lines of code found").get_by_role("listitem").first
    expect(line).to_contain_text("dataset.py:41 in Pictures.__getitem__, 90 % of the samples of rank 2")
    line.get_by_role("link", name="See the report").click()
    expect(page.locator("#verdict-title")).to_be_visible()


def test_the_next_event_that_a_search_finds_is_shown_and_chosen(page: Page) -> None:
    open_timeline(page, "/reports/team-c/loop/timeline")
    page.get_by_label("Search the names of events").fill("addmmbackward")
    page.get_by_role("button", name="Next event").click()
    first = wait_for_state(page, "%22chosen%22%3A%7B")
    expect(page.locator(".timeline-chosen")).to_contain_text("AddmmBackward0")
    page.get_by_role("application").focus()
    page.keyboard.press("n")
    later = first["chosen"]["start"] + 1_000_000
    second = wait_for_state(page, f"%22start%22%3A{later}%7D")
    assert (second["start"] >= 0, second["chosen"]["rank"]) == (True, 0)
    page.keyboard.press("p")
    wait_for_state(page, f"%22start%22%3A{first['chosen']['start']}%7D")
    page.keyboard.press("p")
    expect(page.get_by_role("alert")).to_contain_text("no earlier event")


def test_the_part_in_view_opens_in_perfetto(page: Page) -> None:
    page.context.route(
        "https://ui.perfetto.dev/**", lambda route: route.fulfill(body=PERFETTO, content_type="text/html")
    )
    open_timeline(page, "/reports/team-c/loop/timeline")
    page.get_by_role("application").focus()
    for _ in range(4):
        page.keyboard.press("w")
    wait_for_state(page, "%22end%22%3A[1-9]")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Open this part in Perfetto").click()
    opened.value.locator("#events").wait_for()
    events = json.loads(opened.value.locator("#events").inner_text())["traceEvents"]
    shown = {event["name"] for event in events if event["ph"] == "X"}
    assert "gemm" in shown
    assert "ProfilerStep#2" in shown
    assert "ProfilerStep#0" not in shown
    assert {"s", "f"} <= {event["ph"] for event in events}


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
    expect(operation).to_contain_text("AddmmBackward0")
    assert person.count <= 3


def test_hotline_what_an_operation_launches(page: Page) -> None:
    person = Clicks(page)
    person.open_timeline()
    person.click(tree(page).filter(has_text="forward"))
    person.click(tree(page).filter(has_text="aten::linear"))
    expect(page.locator(".timeline-chosen")).to_contain_text("launches gemm")
    assert person.count <= 3


def choose_widest(page: Page, picture: Locator, *, click: bool = True) -> tuple[float, float]:
    """A place on the picture inside an event of the device: the first one that answers the pointer, clicked or not."""
    box = picture.bounding_box()
    assert box
    for down in range(60, 420, 9):
        for right in range(200, 900, 40):
            x, y = box["x"] + right, box["y"] + down
            page.mouse.move(x, y)
            if page.locator(".timeline-hover", has_text="times on rank").count():
                if click:
                    page.mouse.click(x, y)
                return x, y
    raise AssertionError("nothing answers the pointer")
