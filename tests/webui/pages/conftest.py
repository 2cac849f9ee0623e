"""The built pages over the real service, in a real Chromium."""

import asyncio
import dataclasses
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.job.stragglers.sampled_device import find_sampled_device
from fleetprof_analyzer.pyramid.fleet import write_fleet
from fleetprof_analyzer.slices.stored_report import put_report
from fleetprof_api import keys
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Example
from fleetprof_api.report.rank_tables import MemoryPeak
from fleetprof_api.report.report import Report, Series, read_report, write_report
from fleetprof_api.telemetry.history import POINTS, NamespaceDay, WorkloadDay, write_day
from fleetprof_webui.catalog.database import sqlite_url
from fleetprof_webui.local import LocalSite, serve_locally
from fleetprof_webui.pages import STATIC
from harness.browser import PATIENCE_MS, miss, run_chromium
from harness.memory_store import MemoryStore
from harness.reports.large_job import enlarge
from harness.reports.module_trees import plant_tree
from harness.stalls.planted_ranks import hang
from harness.timelines.timeline_files import make_trace, write_trace
from harness.traces.launches import FAST, SLOW, on, write_launches
from playwright.sync_api import Browser, Page

from ..conftest import POLICY, make_ledger, put_capture, put_ledger, put_stacks

HOSTILE = '<img src=x onerror="document.title=1">\u202egnp.exe'
SAMPLED = PlaceInCode(file="shop/dataset.py", line=41, function="Pictures.__getitem__", samples=9, of_samples=10)
MANY = 1000
IDLE = WorkloadDay("Job", "idle", {"gpu_busy_ratio": [0.1], "iterations_per_second": [4.0, 1.0]})
LATE_RANK = 637
DAY_END_S = 4_000_000_200
"""After now, whenever that is."""
_LOOK_EVERY_S = 0.5


def say_time(hours_before_end: float) -> str:
    """As a policy's status writes it."""
    return datetime.fromtimestamp(DAY_END_S - 3600 * hours_before_end, UTC).isoformat().replace("+00:00", "Z")


ACTED: dict[str, Any] = {
    "name": "starved",
    "spec": {"triggers": [{"name": "told", "type": "Alert"}]},
    "status": {
        "captures": [
            {
                "request": "starved-1",
                "uid": "slow",
                "workload": "Job/llama",
                "trigger": "told",
                "cause": "the alert FleetprofLowUtilization fires",
                "firedTime": say_time(18),
                "result": "Complete",
                "headline": "It waits for data.",
            },
        ],
        "suppressions": [
            {
                "workload": "Job/llama",
                "trigger": trigger,
                "reason": "Cooldown",
                "message": "the job was captured 600 s ago",
                "count": 3,
                "firstTime": say_time(first),
                "lastTime": say_time(last),
            }
            for trigger, first, last in (("told", 17, 12), ("yesterday's", 30, 25))
        ],
    },
}


def add_samples(report: Report) -> Report:
    """The report with power of each rank, and throttling of rank 2, over eight seconds."""
    at = [DAY_END_S * 10**9 + second * 10**9 for second in range(8)]
    ranks = []
    for number, rank in enumerate(report.ranks):
        watts: list[float | None] = [600.0 - 10 * number for _ in at]
        series = [Series(name="power", unit="W", at_unix_ns=at, values=watts)]
        if rank.rank == 2:
            throttled: list[float | None] = [100.0 if second >= 4 else 0.0 for second in range(8)]
            series.append(Series(name="throttled_by_power", unit="%", at_unix_ns=at, values=throttled))
        ranks.append(msgspec.structs.replace(rank, host_name=f"node-{number // 2}", device_series=series))
    sampled = msgspec.structs.replace(report, ranks=ranks)
    findings = find_findings(sampled, late_device=find_sampled_device(sampled))
    return msgspec.structs.replace(sampled, findings=findings)


def write_hostile_names() -> bytes:
    """The timeline of a rank whose three long events have names made to harm."""
    trace = make_trace([(0, at * 20_000_000, 18_000_000, at) for at in range(3)])
    return write_trace(dataclasses.replace(trace, time_origin="trace", names=[HOSTILE, "long" * 2500, "nul\0\u2067"]))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps a folder's tests in one worker, so that captures are analysed, and the service started, once for all."""
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.xdist_group(f"pages {item.path.parent.name}"))


def put_sizes(store: MemoryStore) -> None:
    """Two captures of a job, whose iterations and memory grow with its batch."""
    for uid, size, longer, peak in (("b8", 8, 1.0, 3 << 30), ("b16", 16, 1.6, 5 << 30)):
        put_capture(store, "team-c", uid, "gpu_healthy", at=600 + size, name="sized")
        report = read_report(store.get(keys.report_key("team-c", uid)))
        ranks = [
            msgspec.structs.replace(
                rank,
                samples_per_iteration=size,
                iterations=[
                    msgspec.structs.replace(one, duration_ns=round(one.duration_ns * longer)) for one in rank.iterations
                ],
                memory=[MemoryPeak(device="0", allocated_bytes=peak, reserved_bytes=peak)],
            )
            for rank in report.ranks
        ]
        put_report(store, "team-c", uid, msgspec.structs.replace(report, ranks=ranks))


@pytest.fixture(scope="session")
def shown(analysed: MemoryStore) -> MemoryStore:
    """The captures of the other tests, one of many ranks, one with names made to harm, one without GPUs, one with a
    kernel on two streams."""
    store = MemoryStore()
    for info in analysed.list("v1/"):
        store.put(info.key, analysed.get(info.key))
    report = read_report(store.get(keys.report_key("team-a", "slow")))
    kernels = [msgspec.structs.replace(report.kernels[0], name=HOSTILE), *report.kernels[1:]]
    assert report.stragglers
    late, *others = report.stragglers.ranks
    placed = [msgspec.structs.replace(late, place=SAMPLED), *others]
    stragglers = msgspec.structs.replace(report.stragglers, ranks=placed)
    hostile = msgspec.structs.replace(report, title=HOSTILE, kernels=kernels, stragglers=stragglers)
    without = msgspec.structs.replace(report, totals=[msgspec.structs.replace(report.totals[0], kind="cpu")])
    for uid, made in (
        ("many", enlarge(msgspec.structs.replace(report, predictions=None), MANY, LATE_RANK)),
        ("hostile", hostile),
        ("without-devices", without),
        ("sampled", add_samples(report)),
    ):
        store.put(keys.request_key("team-c", uid), store.get(keys.request_key("team-a", "slow")))
        ledger = store.get(keys.ledger_key("team-a", "slow")).replace(b'"slow', f'"{uid}'.encode())
        store.put(keys.ledger_key("team-c", uid), ledger.replace(b'"team-a"', b'"team-c"'))
        # Texts of others are made printable where a report is read.
        put_report(store, "team-c", uid, read_report(write_report(made)))
    busy: list[float | None] = [None if 100 <= step < 130 else 0.6 + 0.3 * (step % 24 < 20) for step in range(POINTS)]
    measured: dict[str, list[float | None]] = {"gpu_sm_active_ratio": busy, "iteration_seconds": [0.21] * POINTS}
    day = NamespaceDay(DAY_END_S * 10**9, [WorkloadDay("Job", "llama", measured), IDLE])
    store.put(keys.telemetry_day_key("team-a"), write_day(day))
    store.put(keys.policies_key("team-a"), json.dumps({"version": 1, "policies": [POLICY, ACTED]}).encode())
    put_stacks(store, "team-a", "hung", hang(64, 7), at=300)
    put_capture(store, "team-c", "loop", "gpu_loop", at=400, name="loop")
    put_capture(store, "team-c", "nodes", "gpu_slow_rank", at=350, name="on-nodes")
    put_report(store, "team-c", "nodes", add_samples(read_report(store.get(keys.report_key("team-c", "nodes")))))
    put_capture(store, "team-c", "waits", "four_ranks", at=450, name="waits")
    for uid in ("loop", "waits"):
        of_loop = read_report(store.get(keys.report_key("team-c", uid)))
        begin = of_loop.ranks[0].iterations[1]
        example = Example(rank=0, start_ns=begin.start_ns, duration_ns=begin.duration_ns // 2)
        tree = plant_tree(example, with_roofs=uid == "loop")
        put_report(store, "team-c", uid, msgspec.structs.replace(of_loop, module_tree=tree))
    put_sizes(store)
    planted = gzip.compress(write_launches([*on(7, FAST), *on(20, SLOW), *on(7, [5], "relu")]))
    store.put(keys.trace_key("team-c", "streams", 0), planted)
    store.put(keys.request_key("team-c", "streams"), store.get(keys.request_key("team-a", "slow")))
    put_ledger(store, make_ledger("team-c", "streams", at=500, ranks=1))
    analyze_capture(store, "team-c", "streams")
    rank_file = write_hostile_names()
    store.put(keys.rank_timeline_key("team-c", "hostile", 2), rank_file)
    store.put(keys.fleet_timeline_key("team-c", "hostile"), write_fleet(hostile, {2: len(rank_file)}, {}))
    return store


@pytest.fixture(scope="session")
def site(shown: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSite]:
    """The service as `fleetprof ui` starts it, in a thread; it ends with the tests."""
    if not (STATIC / "index.html").is_file():
        miss("the pages are not built: make webui")
    catalog = sqlite_url(tmp_path_factory.mktemp("catalog") / "catalog.sqlite")
    ready, stop = threading.Event(), asyncio.Event()
    found: list[LocalSite] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with serve_locally(
            shown, catalog, port=0, captures=None, look_every_s=_LOOK_EVERY_S, announce=lambda _address: None
        ) as local:
            found.append(local)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60), "the service does not start"
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


_BROWSER = pytest.StashKey[Browser]()


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Browser:
    """Chromium without a window, the same for all tests of the folder that run in a row.

    Not of a session: while Playwright runs, no test of a coroutine can begin in its thread.
    """
    folder: pytest.Collector = next(node for node in request.node.iter_parents() if node.path == Path(__file__).parent)
    if _BROWSER not in folder.stash:
        ending = ExitStack()
        folder.stash[_BROWSER] = ending.enter_context(run_chromium())
        ending.callback(folder.stash.__delitem__, _BROWSER)
        folder.addfinalizer(ending.close)
    return folder.stash[_BROWSER]


@pytest.fixture(scope="session")
def session_state(site: LocalSite, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Browser], Path]:
    """The cookie of a person who opened the address that the service printed."""
    state = tmp_path_factory.mktemp("session") / "state.json"

    def sign_in(browser: Browser) -> Path:
        if not state.exists():
            context = browser.new_context()
            page = context.new_page()
            page.goto(site.make_address())
            page.get_by_role("heading", name="Fleet").wait_for()
            assert "token" not in page.url
            context.storage_state(path=state)
            context.close()
        return state

    return sign_in


@pytest.fixture
def page(
    browser: Browser, site: LocalSite, session_state: Callable[[Browser], Path], request: pytest.FixtureRequest
) -> Iterator[Page]:
    """A signed-in tab in the theme of the parameter `theme`; a test fails where script or policy complains."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{site.port}",
        storage_state=session_state(browser),
        viewport={"width": 1440, "height": 900},
        color_scheme="dark" if params.get("theme") == "dark" else "light",
        reduced_motion="reduce",
    )
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield tab
    context.close()
    # A status of the service is in the console too; the tests that ask for one look at the page.
    assert [text for text in complaints if "Failed to load resource" not in text] == []
