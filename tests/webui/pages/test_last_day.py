"""The last day of a workload, with the marks of alerts and policies."""

from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

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
