"""The section *What if* of a report: sliders and bars whose numbers are those of `fleetprof whatif`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fleetprof_analyzer.whatif.batch_sizes import predict_size, sized_capture
from fleetprof_api import keys
from fleetprof_api.quantities import duration, size
from fleetprof_api.report.report import read_report
from fleetprof_cli.main import main
from harness.browser import keep_picture
from harness.memory_store import MemoryStore
from playwright.sync_api import Page, expect

from .looking import find_serious, open_whole

TRACES = Path(__file__).parents[2] / "data" / "traces" / "gpu_slow_rank"
WHATIF = "/reports/team-a/slow#whatif"
SIZED = "/reports/team-c/b8#whatif"


def ask(*settings: str) -> dict[str, Any]:
    """The answer of the command."""
    sets = [word for one in settings for word in ("--set", one)]
    ran = CliRunner().invoke(main, ["whatif", str(TRACES), *sets, "-o", "json"])
    assert ran.exit_code == 0, ran.output
    answer: dict[str, Any] = json.loads(ran.output)
    return answer


def expect_answer(page: Page, answer: dict[str, Any]) -> None:
    sentence = page.locator("#whatif [role=status]")
    value = answer["iteration_ns"]
    expect(sentence.locator(".big")).to_have_text(duration(round(value["value"])))
    expect(sentence).to_contain_text(f"95 %: {duration(round(value['low']))} to {duration(round(value['high']))}")


def test_sliders_and_ticks_say_what_the_command_says(page: Page) -> None:
    page.goto(WHATIF)
    expect_answer(page, ask())
    network = page.get_by_role("slider", name="Network")
    network.focus()
    page.keyboard.press("ArrowRight")
    expect(network).to_have_attribute("aria-valuetext", "2x bandwidth")
    expect_answer(page, ask("network=2x"))
    ranks = page.get_by_role("slider", name="Ranks")
    ranks.focus()
    page.keyboard.press("ArrowRight")
    expect(ranks).to_have_attribute("aria-valuetext", "8 ranks")
    both = ask("network=2x", "ranks=8")
    expect_answer(page, both)
    communication = both["bound_by"]["communication"]
    then = page.get_by_role("img", name=re.compile("^Then: Compute"))
    expect(then).to_have_attribute("aria-label", re.compile(f"Communication {100 * communication:.1f} %"))
    expect(page.get_by_text("fleetprof whatif slow --set network=2x --set ranks=8", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("whatif=network"))
    # What nobody predicted together is said to be a product.
    page.get_by_label("No wait for the data loader").check()
    expect(page.get_by_text("The product of single predictions")).to_be_visible()
    page.reload()
    expect(page.get_by_label("No wait for the data loader")).to_be_checked()
    page.get_by_role("button", name="As now").click()
    page.get_by_label("Rank 2 as fast as a rank with the same work").check()
    expect_answer(page, ask("without-straggler=2"))


def test_throughput_and_memory_are_dragged_and_the_batch_follows(page: Page, shown: MemoryStore) -> None:
    reports = {at: read_report(shown.get(keys.report_key("team-c", f"b{at}"))) for at in (8, 16)}
    captures = [sized_capture(report, float(at)) for at, report in reports.items()]
    page.goto(SIZED)
    batch = page.get_by_role("slider", name="Batch size")
    for bar, share in (("Throughput", 1.0), ("Memory", 0.5)):
        slider = page.get_by_role("slider", name=bar)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        assert box
        page.mouse.move(box["x"] + 5, box["y"] + 12)
        page.mouse.down()
        page.mouse.move(box["x"] + share * box["width"] - 1, box["y"] + 12, steps=4)
        page.mouse.up()
        chosen = int(batch.input_value())
        assert chosen == 32 if share == 1.0 else 16 <= chosen <= 20
        answer = predict_size(captures, float(chosen), [])
        assert answer.iteration_ns
        assert answer.memory_bytes
        expect(page.locator("#whatif [role=status] .big")).to_have_text(duration(round(answer.iteration_ns.value)))
        expect(page.locator("#whatif [role=status]")).to_contain_text(
            f"peak memory {size(round(answer.memory_bytes.value))} (95 %: {size(round(answer.memory_bytes.low))} to"
        )
    page.get_by_role("slider", name="Throughput").press("ArrowRight")
    expect(batch).to_have_value(str(chosen + 1))
    expect(page.locator("#whatif code").filter(has_text="--set batch_size")).to_contain_text(
        "fleetprof whatif b8@8 b16@16"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_hinders_nobody_and_fits_a_phone(page: Page, theme: str) -> None:
    for address, name in ((f"{WHATIF}".replace("#", "?whatif=network=4x,ranks=8#"), "replayed"), (SIZED, "sized")):
        for width in (1440, 800, 390):
            page.set_viewport_size({"width": width, "height": 900})
            open_whole(page, address)
            page.locator("#whatif").scroll_into_view_if_needed()
            page.evaluate("document.querySelector('#whatif').scrollIntoView()")
            keep_picture(page, f"whatif-{name}-{width}-{theme}")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert find_serious(page) == []


def test_a_report_without_predictions_says_why(page: Page) -> None:
    page.goto("/reports/team-c/many#whatif")
    expect(page.locator("#whatif")).to_contain_text("Nothing was predicted in advance")
