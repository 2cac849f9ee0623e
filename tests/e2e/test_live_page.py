"""A capture of a real job, asked for in a real browser, whose page shows each rank's way without being loaded again,
and whose timeline names the modules that it asked for."""

import json
import re
from urllib.parse import urlencode

import pytest
from fleetprof_api import keys
from fleetprof_api.spoken_names import say_name
from harness.browser import run_chromium
from harness.timelines.timeline_reader import RankFile
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
  collect: [Stacks]
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
ITERATION, _, ROW = range(3)
"""Kinds of nodes in a rank's tree; between them stages."""
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
        report_address = page.url.partition("?")[0]
        for rank in range(2):
            key = keys.rank_timeline_key("local", report_address.rpartition("/")[2], rank)
            above = find_around(RankFile((hub.state / "store" / key).read_bytes()), "aten::linear")
            path = next(names for names in above if any(name.startswith("nn.Module: ") for name in names))
            assert path[1] == "forward"
            view = json.dumps({"version": 1, "open": [rank], "fold": "one", "group": 0})
            page.goto(f"{report_address}/timeline?{urlencode({'view': view})}")
            grid = page.get_by_role("treegrid", name=f"Rank {rank}")
            for level, name in enumerate([*path, "aten::linear"], 1):
                row = grid.locator(f"[aria-level='{level}']", has=page.get_by_text(say_name(name), exact=True)).first
                expect(row).to_be_visible(timeout=60_000)
                if row.get_attribute("aria-expanded") == "false":
                    row.click()
        page.goto(report_address)
        page.get_by_role("link", name="Request", exact=True).click()
        page.get_by_role("link", name="Ask again").click()
        page.get_by_role("button", name="Ask for the capture").click()
        page.get_by_role("button", name="Cancel", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("Cancelled", timeout=60_000)


def find_around(file: RankFile, name: str) -> list[list[str]]:
    """For each event of this name in the tree: its iteration, its stage, and what it is nested in."""
    nodes, header = file.nodes(), file.header
    kinds, items, parents = (nodes[column].tolist() for column in ("kind", "item", "parent"))

    def say(at: int) -> str:
        if kinds[at] == ITERATION:
            return f"iteration {header.iterations.index[items[at]]}"
        if kinds[at] != ROW:
            stage: str = header.stages[header.stage_pieces.stage[items[at]]]
            return stage
        name: str = header.names.text[items[at]]
        return name

    found = []
    for at in range(len(kinds)):
        if kinds[at] != ROW or say(at) != name:
            continue
        around: list[str] = []
        while (at := parents[at]) >= 0:
            around.insert(0, say(at))
        found.append(around)
    return found
