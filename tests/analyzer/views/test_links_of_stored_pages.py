"""A page links a trace only where the trace lies beside it; elsewhere it says the command that fetches it."""

import html
import re
from pathlib import Path

import pytest
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_analyzer.page.links import fetch_command, perfetto_command, trace_address
from fleetprof_analyzer.page.page import render_page
from fleetprof_api import keys
from fleetprof_api.report.report import Report, RequestInfo
from fleetprof_store.base import Store
from fleetprof_store.directory import DirectoryStore
from harness.memory_store import MemoryStore
from harness.reference.written_reports import LOADING, job, late
from harness.traces.planted.traces import plant_capture

IN_KUBERNETES = RequestInfo(uid="u-1", name="look", namespace="team-a")
LOCAL = RequestInfo(uid="u-1", name="look", namespace="local")


def links_of(page: str) -> list[str]:
    return [html.unescape(address) for address in re.findall(r'<a href="([^"]*)"', page)]


def page_of(store: Store, uid: str) -> str:
    return without_script(store.get(keys.report_page_key("default", uid)).decode())


def without_script(page: str) -> str:
    """All that is before the slices and the script."""
    return page.partition("<script")[0]


def test_in_a_folder_the_stored_page_links_what_lies_beside_it(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, b"s" * 32, "")
    uid = plant_capture(store, ranks=3).uid
    analyze_capture(store, "default", uid)
    page = page_of(store, uid)
    assert links_of(page) == [f"./ranks/{rank}/trace.json.gz" for rank in range(3)]
    folder = tmp_path / keys.request_prefix("default", uid)
    assert all((folder / link).is_file() for link in links_of(page))
    assert "fetches the traces" not in page


def test_a_trace_that_stayed_beside_its_trainer_is_not_linked(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, b"s" * 32, "")
    uid = plant_capture(store, ranks=3).uid
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    store.delete([keys.trace_key("default", uid, rank) for rank in (0, 2)])
    merge_capture(store, "default", uid)
    assert links_of(page_of(store, uid)) == ["./ranks/1/trace.json.gz"]


def test_traces_that_the_report_asks_for_are_linked_before_they_come(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, b"s" * 32, "")
    uid = plant_capture(store, ranks=6).uid
    store.put(keys.request_key("default", uid), b'{"spec": {"traces": "Auto"}}')
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    store.delete([keys.trace_key("default", uid, rank) for rank in range(6)])
    report = merge_capture(store, "default", uid)
    chosen = sorted(report.whole_traces)
    assert 0 < len(chosen) < 6
    assert links_of(page_of(store, uid)) == [f"./ranks/{rank}/trace.json.gz" for rank in chosen]


def test_in_a_bucket_the_stored_page_says_how_to_fetch_the_traces() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=3).uid
    analyze_capture(store, "default", uid)
    page = page_of(store, uid)
    assert links_of(page) == []
    assert "<code>kubectl fleetprof traces llama-look -n default -o DIR</code> fetches the traces" in page


def test_where_no_trace_is_stored_no_command_promises_one() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    store.delete([keys.trace_key("default", uid, rank) for rank in (0, 1)])
    merge_capture(store, "default", uid)
    page = page_of(store, uid)
    assert links_of(page) == []
    assert "fetches the traces" not in page
    assert "--trace-window" not in page


@pytest.mark.parametrize(("request_", "traces", "kept", "command"), [
    (IN_KUBERNETES, None, None,                      "kubectl fleetprof traces look -n team-a -o DIR"),
    (LOCAL,         None, None,                      "fleetprof report u-1 --trace-window all"),
    (IN_KUBERNETES, None, ["ranks/1/trace.json.gz"], "kubectl fleetprof traces look -n team-a -o DIR"),
    (IN_KUBERNETES, None, [],                        ""),
    (IN_KUBERNETES, "",   None,                      ""),   # they are linked
    (None,          None, None,                      ""),   # whoever analysed them has them
])  # fmt: skip
def test_the_command_that_fetches_the_traces(
    request_: RequestInfo | None, traces: str | None, kept: list[str] | None, command: str
) -> None:
    report = job(request=request_)
    assert fetch_command(report, traces, kept) == command
    page = html.unescape(without_script(render_page(report, traces, kept=kept)))
    assert (f"<code>{command}</code>" in page) == bool(command)


@pytest.mark.parametrize(
    ("source", "traces", "address"),
    [
        ("ranks/0/trace.json.gz", "", "./ranks/0/trace.json.gz"),
        ("a b<c>.json", "up/x", "./up/x/a%20b%3Cc%3E.json"),
        ("ranks/0/trace.json.gz", None, ""),
        ("../../etc/passwd.json", "", ""),
        ("/etc/x.json", "", ""),
        ("javascript:alert(1)", "", ""),
        ("summary", "", ""),
    ],
)
def test_a_trace_is_linked_where_it_lies_beside_the_page(source: str, traces: str | None, address: str) -> None:
    assert trace_address(source, traces) == address


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        (None, "fleetprof analyze FOLDER --trace-window worst --ranks 0,1,2,3"),
        (RequestInfo(uid="u-1", namespace="local"), "fleetprof report u-1 --trace-window worst --ranks 0,1,2,3"),
        (
            RequestInfo(uid="u-1", name="look; rm", namespace="team-a"),
            "kubectl fleetprof report 'look; rm' -n team-a --trace-window worst --ranks 0,1,2,3",
        ),
    ],
)
def test_the_command_for_perfetto(request_: RequestInfo | None, command: str) -> None:
    assert perfetto_command(job(late(LOADING), request=request_)) == command
    assert perfetto_command(Report(request=request_)) == ""
