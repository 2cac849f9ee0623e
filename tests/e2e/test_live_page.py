"""A capture of a real job, asked for in a real browser, whose page shows each rank's way without being loaded again."""

import json
import re

import pytest
from harness.browser import run_chromium
from harness.training.local_system import Local
from harness.waiting import wait_until
from playwright.sync_api import expect

pytestmark = pytest.mark.torch

REQUEST = """
apiVersion: fleetprof.io/v1alpha1
kind: ProfileRequest
metadata: {name: from-the-page}
spec:
  target: {workload: {apiVersion: batch/v1, kind: Job, name: llama}}
  window: {iterations: 20}
  canary: Never
  limits: {maxSlowdownPercent: 0}
"""
# Keeps all that was shown, in the order in which it came.
RECORD = """() => {
    window.seen = [];
    const look = () => {
        const states = [...document.querySelectorAll('.ledger-cells [data-state]')].map((cell) => cell.dataset.state);
        const now = JSON.stringify(states);
        if (states.length > 0 && window.seen.at(-1) !== now) window.seen.push(now);
    };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true});
}"""
ORDER = ["ASKED", "ARMED", "STARTED", "WRITTEN", "UPLOADED"]


def test_a_capture_is_asked_for_and_followed_to_its_report_on_one_page(hub: Local) -> None:
    hub.run_shared("llama", ranks=2)
    ui = hub.begin("ui", "--port", "0", "--no-open")
    address = wait_until(lambda: re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", ui.output.read_text()), "the address")
    with run_chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(address[0])
        page.get_by_role("link", name="Requests").click()
        page.get_by_role("button", name="New capture").click()
        page.get_by_label("The same as YAML").fill(REQUEST)
        page.evaluate(RECORD)

        page.get_by_role("button", name="Ask for the capture").click()

        expect(page).to_have_url(re.compile("/requests/local/"), timeout=60_000)
        report = page.get_by_role("main").get_by_role("link", name="Report", exact=True)
        report.wait_for(timeout=180_000)
        # What was recorded would be gone if the page had been loaded again.
        shown = [json.loads(states) for states in page.evaluate("window.seen")]
        assert shown[-1] == ["UPLOADED", "UPLOADED"]
        for rank in range(2):
            way = [ORDER.index(states[rank]) for states in shown if len(states) == 2]
            assert way == sorted(way)
            assert len(set(way)) >= 3, "asked or armed, recording or written, uploaded"
        report.click()
        expect(page.locator(".verdict-sentence")).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Request", exact=True).click()
        page.get_by_role("link", name="Ask again").click()
        page.get_by_role("button", name="Ask for the capture").click()
        page.get_by_role("button", name="Cancel", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("Cancelled", timeout=60_000)
