"""Waits in the tree of a long trace: those that a far view hides are there when the view is near."""

import dataclasses
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from fleetprof_analyzer.pyramid.fleet import write_fleet
from fleetprof_analyzer.pyramid.writer import write_rank
from fleetprof_analyzer.rank.measures.devices import split_devices
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.rank.summary import TraceFindings
from fleetprof_api import keys
from fleetprof_api.report.report import read_report
from harness.memory_store import MemoryStore
from harness.timelines.timeline_files import make_trace
from playwright.sync_api import Page, expect

from .views import open_timeline, tree

CAPTURE = ("team-c", "without-devices")
MS = 1_000_000
SECOND = 1000 * MS
OPERATOR, COLLECTIVE = range(2)


@pytest.fixture
def long_trace(shown: MemoryStore) -> Iterator[None]:
    """A rank of one thread that trains and one that communicates, over 8 s in 8 iterations, and a busy third thread.

    Of each 10 ms the first 2 compute; then come a collective of 1 ms and, 0.1 ms apart, four of 0.2 ms.
    """
    rows = []
    for at in range(0, 8 * SECOND, 10 * MS):
        rows.append((0, at, 2 * MS, OPERATOR))
        rows += [(1, at + 3 * MS, MS, COLLECTIVE)]
        rows += [(1, at + 4 * MS + short * 300_000 + 100_000, 200_000, COLLECTIVE) for short in range(4)]
        rows += [(2, at + short * 500_000, 100_000, OPERATOR) for short in range(20)]
    trace = dataclasses.replace(make_trace(rows), time_origin="trace", names=["aten::mm", "gloo:all_reduce"])
    bounds = [(number * SECOND, (number + 1) * SECOND) for number in range(8)]
    labels: list[list[Label]] = [[(start, end, "forward")] for start, end in bounds]
    found = TraceFindings(trace, split_devices(trace), find_calls(trace), [], bounds, labels, 0, ())
    file = write_rank(found, 0)
    report = read_report(shown.get(keys.report_key(*CAPTURE)))
    added = {
        keys.rank_timeline_key(*CAPTURE, 0): file,
        keys.fleet_timeline_key(*CAPTURE): write_fleet(report, {0: len(file)}, {}),
    }
    for key, value in added.items():
        shown.put(key, value)
    yield
    shown.delete(list(added))


@pytest.mark.usefixtures("long_trace")
def test_short_waits_of_an_iteration_are_there_when_it_fills_the_view(page: Page) -> None:
    far = {"version": 1, "start": 0, "end": 8 * SECOND, "open": [0], "tree": {"rank": 0, "lines": "0.1"}}
    open_timeline(page, f"/reports/{'/'.join(CAPTURE)}/timeline?view={quote(json.dumps(far))}")
    rest, wait = (tree(page).filter(has_text=name) for name in ("nothing recorded", "wait for gloo:all_reduce"))
    # One for each of the far view's moments.
    expect(wait).to_contain_text("119 ms")
    expect(rest).to_contain_text("681 ms")
    # As the trace has it: 100 times 1 ms and four of 0.2 ms.
    page.get_by_role("treegrid").press("Enter")
    expect(wait).to_contain_text("180 ms")
    expect(rest).to_contain_text("620 ms")
