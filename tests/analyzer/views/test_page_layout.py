"""The page for its reader: no empty columns, a legend for each colour, links to traces, nothing to scroll to."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.views.page.links import perfetto_command, trace_link
from fleetprof_analyzer.views.page.page import render_page
from fleetprof_analyzer.views.page.table import Heading, make_table
from fleetprof_api.ledger import LedgerEntry, RankState, Reason
from fleetprof_api.report.heterogeneity import Box, Heterogeneity, RankTable
from fleetprof_api.report.report import HostSeries, Report, RequestInfo, Series
from fleetprof_api.report.report_tables import CommunicationStatistics, StageTime
from fleetprof_api.report.stragglers import Stragglers
from harness.browser import find_chromium
from harness.reference.written_reports import EXPOSED, LOADING, STAGES, job, late
from markupsafe import Markup

COLOURS = {"compute", "exposed_communication", "exposed_memory", "idle", "overlapped", "dot", "band"}
NOTHING = {"", "–", "0", "0 ns", "0 B", "0.0 %"}
PLAIN_REDUCE = CommunicationStatistics(
    kind="all_reduce", count=9, total_ns=400_000_000, min_ns=1, overlapped_ns=0, ranks=4
)


def cpu_job(**more: Any) -> Report:
    return job(late(LOADING), EXPOSED, kind="cpu", idle_ns=None, communication=[PLAIN_REDUCE], **more)


class Tables(HTMLParser):
    """Rows of cells of every table of a page, and the classes of all its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.classes: list[tuple[str, str]] = []
        self.links: list[str] = []
        self._cell: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.classes += [(tag, name) for name in (named.get("class") or "").split()]
        if tag == "a":
            self.links.append(named["href"] or "")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append("".join(self._cell).strip())
            self._cell = None


@pytest.mark.parametrize("page", [cpu_job(), job(late(LOADING)), job(ranks=1)], ids=["no GPU", "GPUs", "one rank"])
def test_no_column_says_nothing(page: Report) -> None:
    for head, *rows in [table for table in Tables(render_page(page)).tables if len(table) > 1]:
        for number, title in enumerate(head[1:], 1):
            assert {row[number] for row in rows if len(row) == len(head)} - NOTHING, f"{head[0]} … {title}"


def test_a_column_that_says_nothing_is_left_out() -> None:
    columns = [
        Heading("Rank", "name"),
        Heading("A"),
        Heading("B"),
        Heading("C", stays=True),
        Heading("D"),
    ]
    table = make_table(columns, [["0", "–", "0 ns", "0", "1"], ["1", "–", "3 ns", "0", "–"]])
    assert [column.head for column in table.columns] == ["Rank", "B", "C", "D"]
    assert table.rows == [["0", "0 ns", "0", "1"], ["1", "3 ns", "0", "–"]]


def test_measures_and_samples_that_are_nought_everywhere_are_left_out() -> None:
    tables = [
        RankTable(
            measure=measure, unit="ns", values=[[low], [high]],
            box=Box(min=low, low_whisker=low, q1=low, median=low, q3=high, high_whisker=high, max=high),
        )
        for measure, low, high in (("stage_loss", 0, 0), ("stage_backward", 0, 7))
    ]  # fmt: skip
    differ = Heterogeneity(
        kind="cpu", ranks=[0, 1], iterations=[1], iterations_by="index", recorded=1, tables=tables
    )  # fmt: skip
    series = [
        Series(name=name, unit=unit, at_unix_ns=[1, 2], values=[*values])
        for name, unit, values in (
            ("network_sent", "B/s", (0.0, 0.0)), ("network_received", "B/s", (0.0, 4.0)), ("cpu_busy", "%", (0.0, 0.0)),
        )
    ]  # fmt: skip
    page = cpu_job(heterogeneity=[differ], hosts=[HostSeries(host_name="here", ranks=[0, 1], series=series)])
    text = render_page(page)
    assert "backward (stage)" in text
    assert "loss (stage)" not in text
    assert re.findall(r"Network sent|Network received|CPU busy", text) == ["Network received", "CPU busy"]


@pytest.mark.parametrize("page", [cpu_job(), job(late(LOADING)), job(ranks=13)], ids=["no GPU", "GPUs", "many ranks"])
def test_every_colour_is_in_a_legend(page: Report) -> None:
    text = render_page(page)
    keys = set(re.findall(r'<svg class="key"[^>]*><rect[^>]* class="([^"]+)"', text))
    drawn = re.sub(r'<svg class="key".*?</svg>', "", text, flags=re.DOTALL)
    coloured = {
        name for name in re.findall(r'<(?:rect|circle|polygon)[^>]* class="([^"]+)"', drawn)
        if name.split()[0] in COLOURS
    }  # fmt: skip
    assert coloured <= keys
    assert coloured


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
    link = trace_link(source, traces)
    assert (isinstance(link, Markup) and f'href="{address}"' in link) == bool(address)


def test_the_page_links_every_rank() -> None:
    assert Tables(render_page(cpu_job(), traces="")).links == [f"./ranks/{rank}/trace.json.gz" for rank in range(4)]
    assert Tables(render_page(cpu_job())).links == []


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


LONG = "x" * 200
LEDGER = [
    LedgerEntry(
        rank=rank, process_id=str(rank), state=RankState.FAILED if rank else RankState.UPLOADED,
        reason=Reason.PROCESS_EXITED if rank else None, message="the process ended " * 12, node_name=f"node-{LONG}",
        pod_name="trainer-worker-0", pid=4711, asked_unix_ns=10**18, armed_unix_ns=10**18 + 10**9,
        started_unix_ns=10**18 + 2 * 10**9, written_unix_ns=10**18 + 3 * 10**9, trace_bytes=10**9,
        compressed_bytes=10**8,
    )
    for rank in range(4)
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> str:
    """Chromium; skips where there is none, or fails where FLEETPROF_REQUIRE says that there must be."""
    return find_chromium()


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_a_browser_shows_it_without_scrolling_sideways(browser: str, tmp_path: Path, width: int) -> None:
    """The page as a whole, and the ledger within it; a frame gives phones their width, which windows do not."""
    stages = msgspec.structs.replace(STAGES, stages=[*STAGES.stages, StageTime(stage="other", time_ns=5)])
    shown = cpu_job(ledger=LEDGER)
    shown = msgspec.structs.replace(
        shown, ranks=[msgspec.structs.replace(rank, stages=stages, host_name=LONG) for rank in shown.ranks],
        stragglers=msgspec.structs.replace(shown.stragglers or Stragglers(), unidentifiable=[LONG * 2]),
    )  # fmt: skip
    (tmp_path / "page.html").write_text(render_page(shown))
    measure = (
        "const w = document.querySelector('iframe').contentWindow, d = w.document;"
        "const wide = [d.documentElement, ...d.querySelectorAll('.fits')].map(e => [e.scrollWidth, e.clientWidth]);"
        "document.body.dataset.wide = JSON.stringify(wide);"
    )
    frame = f'<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>'
    (tmp_path / "frame.html").write_text(f"<body>{frame}<script>onload = () => {{ {measure} }}</script>")
    command = [
        browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        f"--user-data-dir={tmp_path}/profile", "--window-size=1400,1000", "--virtual-time-budget=2000", "--dump-dom",
        (tmp_path / "frame.html").as_uri(),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'data-wide="([^"]+)"', result.stdout)
    assert found is not None, result.stderr[-1000:]
    for needed, there in json.loads(found[1].replace("&quot;", '"')):
        assert there > 0
        assert needed <= there
