"""The summary of a stolen training pod ends in a report that everybody can show, or in a problem."""

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.assembly.bounds import bound_report
from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.stored_summary import Unusable, pack_summary, unpack_summary
from fleetprof_analyzer.rank.summary import RankSummary, merge, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.slices.writer import write_slices
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.report.report import (
    MOST_REPORT_BYTES,
    Rank,
    Report,
    TimeBreakdown,
    UnreadableReport,
    read_report,
    write_report,
)
from fleetprof_webui.catalog.records import report_rows
from fleetprof_webui.reports.reading import decode_head
from harness.traces.planted.traces import plant

Path = tuple[str | int, ...]
NUMBERS = ("9" * 400, "-" + "9" * 400, "9" * 18, "-" + "9" * 18, "1e308", "-1e308", "9e98", "0", "-1")
TEXTS = ("\x1b]52;c;Y3VybCBldmlsfHNo\x07\x1b[2J", "x\nFORGED LINE", "\u202eabc", "<script>alert(1)</script>")


def summarise_planted(rank: int) -> RankSummary:
    trace = read_trace(io.BytesIO(plant(rank, iterations=4).gzipped()), f"ranks/{rank}/trace.json.gz", Problems())
    return summarise(trace, None, rank_number=rank, terms=RecordingTerms(), problems=Problems())


@pytest.fixture(scope="module")
def honest() -> list[RankSummary]:
    return [summarise_planted(rank) for rank in range(2)]


@pytest.fixture(scope="module")
def document(honest: list[RankSummary]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(pack_summary(honest[0], trace_bytes=1, samples_bytes=1)))
    return document


def paths_of(value: Any, kind: type | tuple[type, ...], path: Path = ()) -> Iterator[Path]:
    """The place of each value of a kind; of a list the first."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from paths_of(part, kind, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value[:1]):
            yield from paths_of(part, kind, (*path, place))
    elif isinstance(value, kind) and not isinstance(value, bool):
        yield path


def put(document: dict[str, Any], path: Path, literal: str) -> bytes:
    """The summary with this JSON in one place."""
    changed = deepcopy(document)
    at: Any = changed
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = "@@@"
    return gzip.compress(json.dumps(changed).replace('"@@@"', literal).encode(), 1)


def show(summaries: list[RankSummary], *, page: bool = False) -> str:
    """All that people see of a report: of what is stored, and of what was made just now."""
    report = assemble(merge([summaries]), title="t", made_unix_ns=0)
    try:
        stored = read_report(write_report(report))
    except UnreadableReport:  # a duration below 0, say: the catalog tells this of the one capture
        return ""
    slices = write_slices(stored)
    with suppress(UnreadableReport):  # a sum beyond 63 bits: the same
        report_rows(decode_head(slices["head"]))
    return render_text(report) + (render_page(stored) if page else render_text(stored))


@pytest.mark.attack
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{number[:5]} {len(number)}")
def test_no_number_of_a_summary_breaks_what_is_made_of_it(
    honest: list[RankSummary], document: dict[str, Any], number: str
) -> None:
    refused = 0
    for path in paths_of(document, (int, float)):
        try:
            hostile = unpack_summary(put(document, path, number), 0)
        except Unusable:
            refused += 1
            continue
        show([hostile, honest[1]])
    assert refused > 0


@pytest.mark.attack
@pytest.mark.parametrize("text", TEXTS, ids=["escape", "line", "direction", "markup"])
def test_no_text_of_a_summary_reaches_a_terminal_or_a_page_as_it_is(
    honest: list[RankSummary], document: dict[str, Any], text: str
) -> None:
    for path in paths_of(document, str):
        try:
            hostile = unpack_summary(put(document, path, json.dumps(text)), 0)
        except Unusable:
            continue
        shown = show([hostile, honest[1]], page=True)
        assert text not in shown.partition("<!doctype html>")[2]
        assert text.isprintable() or text not in shown
        assert "\nFORGED LINE" not in shown


@pytest.mark.attack
@pytest.mark.parametrize(
    ("path", "literal"),
    [
        (("summary", "rank", "trace_id"), json.dumps("A" * (1 << 20))),
        (("summary", "rank", "copies"), json.dumps([{"kind": "k" * 20_000}])),
        (("summary", "rank_number"), "1"),
        (("summary", "rank", "rank"), "1"),
        (("summary", "problems"), '[{"kind":"truncated","message":"m","rank":1}]'),
        (("summary", "kernels"), "[" + "{}," * (1 << 19) + "{}]"),
    ],
    ids=["long", "long kind", "another rank", "another rank within", "another's problems", "many"],
)
def test_what_no_summary_of_ours_says_is_not_merged(document: dict[str, Any], path: Path, literal: str) -> None:
    with pytest.raises(Unusable):
        unpack_summary(put(document, path, literal), 0)


@pytest.mark.attack
def test_a_report_is_never_longer_than_its_readers_take() -> None:
    rank = Rank(rank=0, source="s", kind="gpu", time_basis="device", time_ns=TimeBreakdown())
    many = [msgspec.structs.replace(rank, idle_places=[], lost=["x" * 16_000] * 60) for _ in range(80)]
    with pytest.raises(ValueError, match="bytes, 67,108,864 are allowed"):
        bound_report(Report(ranks=many))
    series = [{"name": "power", "unit": "W", "at_unix_ns": [10**18] * 60_000, "values": [0.5] * 60_000}]
    ranks = msgspec.convert([msgspec.to_builtins(rank) | {"device_series": series}] * 50, list[Rank])
    report = bound_report(Report(ranks=ranks))
    assert ProblemKind.REPORT_SHORTENED in [problem.kind for problem in report.problems]
    assert len(write_report(report)) < MOST_REPORT_BYTES
    assert len(read_report(write_report(report)).ranks) == 50


def test_a_name_that_is_too_long_is_cut_where_the_trace_is_ones_own() -> None:
    report = bound_report(Report(title="t" * 100_000))
    assert len(report.title) == 4096


@pytest.mark.attack
@pytest.mark.parametrize("text", TEXTS, ids=["escape", "line", "direction", "markup"])
def test_nor_does_any_text_of_a_report_that_a_taken_over_analyzer_wrote(honest: list[RankSummary], text: str) -> None:
    report = json.loads(write_report(assemble(merge([honest]), title="t", made_unix_ns=0)))
    for path in paths_of(report, str):
        at: Any = (changed := deepcopy(report))
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = text
        try:
            stored = read_report(json.dumps(changed).encode())
        except UnreadableReport:
            continue
        text_of_it, page = render_text(stored), render_page(stored)
        assert text not in page, path
        assert text.isprintable() or text not in text_of_it, path
        assert "\nFORGED LINE" not in text_of_it + page, path
