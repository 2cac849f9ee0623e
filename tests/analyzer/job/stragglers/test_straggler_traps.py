"""The public straggler traps: rank 2 of 4 is late by 300 µs in every iteration, however the traces are written."""

from pathlib import Path

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.job.stragglers.verdict import find_stragglers
from fleetprof_analyzer.rank.communication.extraction import extract_operations
from fleetprof_analyzer.rank.communication.operations import RankOperations, decode, encode
from fleetprof_analyzer.rank.identity import identify
from fleetprof_analyzer.rank.iterations import Asked, find_iterations
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems


def operations_of(folder: Path, pattern: str = "*.json*") -> list[RankOperations]:
    found = []
    for path in sorted(folder.glob(pattern)):
        problems = Problems()
        with path.open("rb") as file:
            trace = read_trace(file, path.name, problems)
        rank = identify(trace.metadata, path.name, None, problems)
        iterations = find_iterations(trace, None, Asked(), problems)
        operations = extract_operations(trace, iterations, None, rank_number=rank)
        if operations is not None:
            found.append(decode(encode(operations)))
    return found


# folder: the iterations that all ranks hold
TRAPS = {
    "strag_old": [1, 2, 3, 4],
    "strag_dev": [1, 2, 3, 4],
    "stream0": [1, 2, 3, 4],
    "basetime": [1, 2, 3, 4],
    "missing_step": [2, 3, 4],
    "strag_skew": [1, 2, 3, 4],
}


@pytest.mark.parametrize("folder", TRAPS)
def test_rank_2_is_late_by_300_us_and_nobody_else(traps: Path, folder: str) -> None:
    found = find_stragglers(operations_of(traps / folder))
    assert found is not None
    assert [(one.rank, one.lateness_ns, one.cause) for one in found.ranks] == [(2, 300_000, "slow_gpu")]
    assert (found.verdict, found.iterations, found.order) == ("straggler", TRAPS[folder], [])
    assert found.ranks[0].gain == pytest.approx(0.3)
    assert (found.fidelity, found.unmatched) == (1.0, 0)
    evidence = found.ranks[0].evidence[0]
    assert (evidence.measure, evidence.value, evidence.usual) == ("work on the device", 700_000, 400_000)


def test_one_iteration_is_too_few_for_a_verdict(shared_traces: Path) -> None:
    """Others put rank 7 first: it began 7.5 ms late, which is an effect of the window's edge."""
    found = find_stragglers(operations_of(shared_traces / "dlrm_v100_8ranks"))
    assert found is not None
    assert (found.verdict, found.ranks) == ("undecided", [])
    assert found.reason == "1 iteration is in all of the traces, and a verdict takes 3"
    assert found.unmatched == 0


def test_one_rank_of_a_job_has_nobody_to_be_compared_with(shared_traces: Path) -> None:
    assert find_stragglers(operations_of(shared_traces / "nccl_a100")) is None


@pytest.mark.parametrize("folder", ["strag_dev", "missing_step"])
def test_the_report_says_it(traps: Path, folder: str) -> None:
    report = analyze_directory(traps / folder)
    assert report.stragglers is not None
    assert [(one.rank, one.lateness_ns) for one in report.stragglers.ranks] == [(2, 300_000)]


def test_a_trace_that_nobody_foresaw_costs_its_communication_only(traps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("fleetprof_analyzer.rank.communication.extraction.extract_operations", fail)
    report = analyze_directory(traps / "strag_dev")
    assert (len(report.ranks), report.stragglers) == (4, None)
    assert {problem.kind for problem in report.problems} == {"analyzer_fault"}
