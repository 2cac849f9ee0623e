"""Each measure made to fail in turn: its section is lost with a reason, and the rank and the report are there."""

import gzip
import inspect
from collections.abc import Callable
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.assembly import report as assembly
from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.capture import folder
from fleetprof_analyzer.capture.folder import analyze_directory, summarise_file
from fleetprof_analyzer.rank import summary
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import RankSummary, merge
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api import keys
from fleetprof_api.report.report import Report, read_report, write_report
from fleetprof_api.samples import RankSamples
from harness.memory_store import MemoryStore
from harness.reports.page_text import page_text
from harness.traces.kept_traces import traces_in
from harness.traces.planted.ranks import PlantedRank, write_ranks
from harness.traces.planted.traces import plant_capture

MEASURED = tuple(f"fleetprof_analyzer.{room}." for room in ("rank", "job", "findings", "words"))
# What a summary is made by is no measure of it.
NO_MEASURES = {"merge"}


def measures(module: ModuleType) -> list[str]:
    """All functions of others that a module calls to measure something."""
    found = inspect.getmembers(module, inspect.isfunction)
    return sorted(
        name for name, function in found
        if function.__module__.startswith(MEASURED) and function.__module__ != module.__name__
        and name not in NO_MEASURES
    )  # fmt: skip


@cache
def read_recordings() -> list[tuple[bytes, RankSamples | None]]:
    """Two ranks with a device and samples, and one of a job without a device."""
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    ranks = [
        (
            store.get(keys.trace_key("default", uid, rank)),
            msgspec.json.decode(gzip.decompress(store.get(keys.samples_key("default", uid, rank))), type=RankSamples),
        )
        for rank in (0, 1)
    ]
    return [*ranks, (traces_in("four_ranks")[2].read_bytes(), None)]


def make_summaries() -> list[RankSummary]:
    return [
        summarise_file(
            partial(BytesIO, data), f"rank{rank}", samples=samples, assigned=rank, terms=RecordingTerms(),
            problems=Problems(),
        )
        for rank, (data, samples) in enumerate(read_recordings())
    ]  # fmt: skip


def render(report: Report) -> None:
    assert read_report(write_report(report)) == report
    assert "analyzer_fault" in render_text(report)
    assert "analyzer_fault" in page_text(report)


def fail(error: BaseException) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


@pytest.mark.parametrize("measure", measures(summary))
def test_a_measure_of_a_rank_that_fails_costs_its_section(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, measure, fail(ValueError("unforeseen")))
    summaries = make_summaries()
    assert [one.rank is not None for one in summaries] == [True] * 3
    problems = [
        (one.rank.lost, problem.message)
        for one in summaries if one.rank is not None
        for problem in one.problems if problem.kind == ProblemKind.ANALYZER_FAULT
    ]  # fmt: skip
    assert problems
    for lost, message in problems:
        section = message.removeprefix("its ").partition(":")[0]
        assert section in lost
        assert message.endswith(f"its {section}: ValueError: unforeseen")
    render(assemble(merge([summaries]), title="t", made_unix_ns=0))


@pytest.mark.parametrize("measure", measures(assembly))
def test_a_measure_over_all_ranks_that_fails_costs_its_section(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = merge([make_summaries()])
    monkeypatch.setattr(assembly, measure, fail(ValueError("unforeseen")))
    report = assemble(summaries, title="t", made_unix_ns=0)
    assert len(report.ranks) == 3
    (message, *_) = [problem.message for problem in report.problems if problem.kind == ProblemKind.ANALYZER_FAULT]
    assert message.startswith("the report's ")
    assert message.endswith(": ValueError: unforeseen")
    render(report)


def test_want_of_memory_is_no_fault_of_a_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "find_stages", fail(MemoryError()))
    assert [(one.rank, [problem.kind for problem in one.problems]) for one in make_summaries()] == [
        (None, [ProblemKind.REFUSED])
    ] * 3


def test_a_rank_that_could_not_be_read_has_left_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ranks(tmp_path, *(PlantedRank(number) for number in range(4)))

    def refuse(trace: Trace, *rest: object, **more: Any) -> RankSummary:
        if trace.source == "rank2.json":
            raise ValueError("unforeseen")
        return summary.summarise(trace, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "summarise", refuse)
    report = analyze_directory(tmp_path)
    assert [(problem.kind, problem.rank) for problem in report.problems] == [(ProblemKind.ANALYZER_FAULT, 2)]
    assert report.stragglers is not None
    assert report.stragglers.not_captured == []
    assert "left no trace" not in render_text(report)
