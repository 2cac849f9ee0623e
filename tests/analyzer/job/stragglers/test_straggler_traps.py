"""Straggler traps: rank 2 of 4 is late by 300 µs in every iteration, however the traces are written."""

from pathlib import Path

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.rank.communication.extraction import extract_operations
from fleetprof_analyzer.rank.communication.operations import RankOperations, decode, encode
from fleetprof_analyzer.rank.identity import identify
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from harness.traces.kept_traces import find, truth_of
from harness.traces.straggler_sections import stragglers_of


def operations_of(folder: Path, pattern: str = "*.json*") -> list[RankOperations]:
    found = []
    for path in sorted(folder.glob(pattern)):
        problems = Problems()
        with path.open("rb") as file:
            trace = read_trace(file, path.name, problems)
        rank = identify(trace.metadata, path.name, None, problems)
        iterations = find_iterations(trace, None, RecordingTerms(), problems)
        operations = extract_operations(trace, iterations, None, rank_number=rank)
        if operations is not None:
            found.append(decode(encode(operations)))
    return found


# folder: the iterations that all ranks hold
TRAPS = {
    "late_rank": [1, 2, 3, 4],
    "late_rank_old_names": [1, 2, 3, 4],
    "late_rank_stream_0": [1, 2, 3, 4],
    "late_rank_skewed_clocks": [1, 2, 3, 4],
    "late_rank_without_a_step": [2, 3, 4],
    "strag_old": [1, 2, 3, 4],
    "strag_dev": [1, 2, 3, 4],
    "stream0": [1, 2, 3, 4],
    "basetime": [1, 2, 3, 4],
    "missing_step": [2, 3, 4],
    "strag_skew": [1, 2, 3, 4],
}


@pytest.mark.parametrize("folder", TRAPS)
def test_rank_2_is_late_by_300_us_and_nobody_else(folder: str) -> None:
    found = stragglers_of(operations_of(find(folder if folder.startswith("late") else f"traps/{folder}")))
    assert found is not None
    assert [(one.rank, one.lateness_ns, one.cause) for one in found.ranks] == [(2, 300_000, "slow_gpu")]
    assert (found.verdict, found.iterations, found.order) == ("straggler", TRAPS[folder], [])
    assert found.ranks[0].gain == pytest.approx(0.3)
    assert (found.fidelity, found.unmatched) == (1.0, 0)
    evidence = found.ranks[0].evidence[0]
    assert (evidence.measure, evidence.value, evidence.usual) == ("work on the device", 700_000, 400_000)


@pytest.mark.parametrize(("folder", "verdict"), [("gpu_slow_rank", "straggler"), ("gpu_healthy", "nobody")])
def test_what_was_planted_in_generated_jobs_is_found(folder: str, verdict: str) -> None:
    truth = truth_of(folder)
    found = stragglers_of(operations_of(find(folder)))
    assert found is not None
    named = [(one.rank, one.cause) for one in found.ranks]
    assert (found.verdict, named) == (verdict, [(truth["rank"], truth["cause"])] if truth["cause"] else [])
    assert found.gain == pytest.approx(truth["gain"], abs=0.03)
    assert (found.matched_by, found.unmatched) == ("sequence numbers", 0)


def test_longer_sequences_on_a_recorded_rank_are_named() -> None:
    found = stragglers_of(operations_of(find("two_ranks_longer")))
    assert found is not None
    assert [(one.rank, one.cause) for one in found.ranks] == [(1, "unequal_work")]
    larger = [one for one in found.ranks[0].evidence if one.measure.startswith("operator ")]
    assert larger
    # Eight sequences of 128 on rank 1, of 32 on the other.
    assert [round(one.value / one.usual, 3) for one in larger] == [4.0] * len(larger)


def test_on_recorded_ranks_without_a_fault_nobody_is_named_and_all_is_matched() -> None:
    found = stragglers_of(operations_of(find("four_ranks")))
    assert found is not None
    assert (found.ranks, found.iterations) == ([], [0, 1, 2, 3, 4])
    # Gradients in each iteration, and the loop's own reduction once.
    assert (found.operations, found.unmatched) == (4 * (5 + 1), 0)


def test_one_iteration_is_too_few_for_a_verdict() -> None:
    """Others put rank 7 first: it began 7.5 ms late, which is an effect of the window's edge."""
    found = stragglers_of(operations_of(find("dlrm_v100_8ranks")))
    assert found is not None
    assert (found.verdict, found.ranks) == ("undecided", [])
    assert found.reason == "1 iteration is in all of the traces, and a verdict takes 3: capture more"
    assert found.unmatched == 0


@pytest.mark.parametrize("folder", ["gpu_one_step", "nccl_a100"])
def test_one_rank_of_a_job_has_nobody_to_be_compared_with(folder: str) -> None:
    assert stragglers_of(operations_of(find(folder))) is None


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
