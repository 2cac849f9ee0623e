"""Terminal and page: complete, escaped, self-contained, and the same for the same report."""

import base64
import hashlib
import html
import re
from html.parser import HTMLParser

import msgspec
import pytest
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.page import page
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.slices.writer import MAKERS
from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.words.bubbles import say_bubbles
from fleetprof_api.ledger import LedgerEntry, RankState, Reason, RecordingCost
from fleetprof_api.report.report import Problem, Report
from fleetprof_api.report.stragglers import PipelineBubbles, Stragglers
from harness.memory_store import MemoryStore
from harness.reports.page_text import page_text
from harness.traces.planted.traces import plant_capture

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m\u202e{{ 7*7 }}"


def report_of(**planted: object) -> Report:
    store = MemoryStore()
    capture = plant_capture(store, **planted)  # type: ignore[arg-type]
    return analyze_capture(store, "default", capture.uid)


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(ranks=4, failed=(3,))


@pytest.fixture(scope="module")
def hostile(report: Report) -> Report:
    ranks = [
        msgspec.structs.replace(rank, source=HOSTILE, device_name=HOSTILE, host_name=HOSTILE) for rank in report.ranks
    ]
    hosts = [msgspec.structs.replace(host, host_name=HOSTILE) for host in report.hosts]
    assert report.request is not None
    return msgspec.structs.replace(
        report,
        title=HOSTILE,
        made_by=HOSTILE,
        request=msgspec.structs.replace(report.request, target=HOSTILE, message=HOSTILE, outcome=HOSTILE),
        ranks=ranks,
        hosts=hosts,
        ledger=[
            LedgerEntry(rank=0, process_id="p", state=RankState.FAILED, reason=Reason.INTERNAL, message=HOSTILE,
                        node_name=HOSTILE, pod_name=HOSTILE)
        ],
        problems=[Problem(kind=HOSTILE, message=HOSTILE, source=HOSTILE)],
    )  # fmt: skip


def test_what_a_pipeline_waits_by_its_schedule_is_said(report: Report) -> None:
    pipeline = PipelineBubbles(share=0.28, ideal_share=3 / 11, stages=4, microbatches=8)
    shown = msgspec.structs.replace(report, stragglers=Stragglers(verdict="nobody", pipeline=pipeline))
    sentence = f"B{say_bubbles(pipeline)[1:]}."
    assert sentence in " ".join(render_text(shown, 400).split())
    assert sentence in page_text(shown)


class Page(HTMLParser):
    """Tags and attributes of a page; raises on a tag that is never closed."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_the_page_runs_its_own_script_alone_and_fetches_nothing(hostile: Report) -> None:
    text = render_page(hostile, traces="")
    page = Page(text)
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "link", "iframe", "object", "form", "base"})
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "style", "xlink:href")
            # A link leads to a trace beside the page, and nowhere else.
            assert name != "href" or (tag == "a" and (value or "").startswith("./") and ".." not in (value or ""))
            assert "://" not in (value or "")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert [attributes for attributes, _ in scripts if "application/gzip" not in attributes] == [""]
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (scripts[-1][1], style)]
    policy = next(
        a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; ")
    assert "unsafe" not in policy
    assert "@import" not in style
    assert "url(" not in style


MIB = 1 << 20
COST = RecordingCost(
    iterations=10,
    events=75_450,
    trace_bytes=19 * MIB,
    memory_before_bytes=700 * MIB,
    memory_peak_bytes=840 * MIB,
    memory_after_bytes=715 * MIB,
)


@pytest.mark.parametrize("with_times", [True, False])
def test_what_the_recording_took_of_memory_stands_beside_its_cost_in_time(report: Report, with_times: bool) -> None:
    more = msgspec.structs.replace(COST, memory_peak_bytes=860 * MIB, memory_after_bytes=700 * MIB)
    lines = [
        LedgerEntry(rank=rank, process_id=f"p{rank}", state=RankState.UPLOADED, recording_cost=cost)
        for rank, cost in enumerate((COST, more, None, RecordingCost(events=5)))
    ]
    shown = msgspec.structs.replace(report, ledger=lines)
    if not with_times:
        shown = msgspec.structs.replace(shown, capture_cost=None)
    text, page = render_text(shown, width=160), page_text(shown)
    for part in (
        "+160 MiB",
        "rank 1: from 700 MiB to 860 MiB, for 75,450 events; 2 ranks measured",
        "+15.0 MiB",
        "rank 0: 715 MiB",
    ):
        assert part in text
        assert part in page
    Page(render_page(shown))
    assert "Memory of the recording" not in render_text(report, width=160)
    assert '"recording":null' in page_text(report)


def test_hostile_names_are_shown_as_text(hostile: Report) -> None:
    text = render_page(hostile).partition("<script")[0]
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    assert "{{ 7*7 }}" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_page_says_what_the_report_says(report: Report) -> None:
    for phrase in ("llama-look", "Job/llama", "ProcessExited", "exposed_communication"):
        assert phrase in page_text(report)
    text = html.unescape(render_page(report).partition("<script")[0])
    assert "llama-look" in text
    assert describe(report).answer.sentence in text
    for rank in report.ranks:
        assert rank.source in text


def test_the_same_report_gives_the_same_page(report: Report) -> None:
    assert render_page(report) == render_page(report)


@pytest.mark.parametrize("ranks", [1, 2, 33, 300])
def test_any_number_of_ranks(ranks: int) -> None:
    one = report_of(ranks=1, iterations=2)
    many = msgspec.structs.replace(
        one,
        ranks=[msgspec.structs.replace(one.ranks[0], rank=n) for n in range(ranks)],
        start=msgspec.structs.replace(one.start, ranks=one.start.ranks * ranks, spread_ns=0),
    )
    Page(render_page(many))
    assert len(render_page(many)) - len(render_page(Report())) < 20_000 + 1_000 * ranks
    assert "rank" in render_text(many)


def test_without_its_overview_the_page_is_the_one_for_readers_without_script(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_read_built", lambda: ("draws an empty page", ""))
    assert "draws an empty page" in render_page(report)
    monkeypatch.setitem(MAKERS, "overview", lambda report, most: report.ranks[10**6])
    found = render_page(report)
    assert "draws an empty page" not in found
    assert "data-slice" not in found
    assert html.escape(describe(report).answer.sentence) in found


def test_an_empty_report_is_a_page_too() -> None:
    Page(render_page(Report()))
    assert "No trace" in render_text(Report())


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(hostile: Report, width: int) -> None:
    text = render_text(hostile, width)
    assert max(len(line) for line in text.splitlines()) <= max(width, 60)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_terminal_says_what_the_report_says(report: Report) -> None:
    text = render_text(report, 110)
    for phrase in ("llama-look", "5 iterations of Job/llama from step 412; 3 of 4 ranks recorded", "ProcessExited",
                 "the same on all ranks", "exposed communication", "stall at the end", "afterwards"):  # fmt: skip
        assert phrase in text
