"""Findings of what all ranks of a CPU-only job spend their time on; one rank's fault is none of all."""

from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Iteration, KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import CoreUse, Silence, Stages, StageTime
from fleetprof_api.report.stragglers import Stragglers

SPAN = 1_000_000
PLACE, OTHER = PlaceInCode(file="train.py", line=12), PlaceInCode(file="data.py", line=7)


def rank(
    number: int, *, loading: int = 0, host: int = 0, waited: int | None = None, exposed: int = 0,
    place: PlaceInCode | None = PLACE,
) -> Rank:  # fmt: skip
    """One that spends so many permille of its time on these."""
    silence = Silence(after="zero_grad", before="aten::randn", time_ns=1000 * host, count=1, place=place)
    return Rank(
        rank=number, source=str(number), kind="cpu", time_basis="host",
        time_ns=TimeBreakdown(span=SPAN, exposed_communication=1000 * exposed),
        data_loading_ns=1000 * loading or None,
        stages=Stages(stages=[StageTime(stage="host", time_ns=1000 * host),
                              StageTime(stage="forward", time_ns=SPAN - 1000 * host)], silences=[silence]),
        cores=None if waited is None else CoreUse(sampled_ns=SPAN, waited_ns=1000 * waited),
    )  # fmt: skip


def findings_of(ranks: list[Rank]) -> list[Finding]:
    """As the report has them, with their sentences."""
    total = KindTotal(kind="cpu", time_basis="host", ranks=len(ranks), time_ns=TimeBreakdown(span=1))
    return find_findings(Report(totals=[total], ranks=ranks))


@pytest.mark.parametrize(("shares", "found"), [
    ([{}, {}], []),
    ([{"loading": 420}, {"loading": 440}], [("data_loading", 420)]),
    ([{"loading": 420}, {"loading": 1}], []),  # one of two: the straggler verdict's
    ([{"loading": 29}, {"loading": 29}], []),
    ([{"loading": 1160}, {"loading": 1160}], [("data_loading", 1000)]),  # most of it before the first operator
    ([{"host": 60}, {"host": 70}, {"host": 90}], [("python", 70)]),
    ([{"waited": 300}, {"waited": 250}], [("cpu_contention", 250)]),
    ([{"waited": 300}, {"waited": None}], []),
])  # fmt: skip
def test_what_all_ranks_spend_time_on(shares: list[dict[str, Any]], found: list[tuple[str, int]]) -> None:
    ranks = [rank(number, **share) for number, share in enumerate(shares)]
    findings = findings_of(ranks)
    assert [(finding.kind, finding.gain_permille) for finding in findings] == found
    assert all(finding.advice and finding.measure for finding in findings)


def test_a_silence_of_all_ranks_has_its_place() -> None:
    (finding,) = findings_of([rank(0, host=60), rank(1, host=90)])
    assert finding.place == PLACE
    assert finding.message.endswith("most of it between zero_grad and aten::randn")


def test_a_loader_that_is_slow_on_all_ranks_has_its_line() -> None:
    sampled = [
        msgspec.structs.replace(one, stages=msgspec.structs.replace(one.stages or Stages(), loading_place=place))
        for one, place in ((rank(0, loading=400), PLACE), (rank(1, loading=600), None), (rank(2, loading=500), OTHER))
    ]
    (finding,) = findings_of(sampled)
    assert (finding.kind, finding.place) == ("data_loading", OTHER)


@pytest.mark.parametrize(("waited", "busy", "word"), [
    (None, None, "more workers and prefetching"), (49, 899, "more workers and prefetching"),
    (50, None, "would share them"), (0, 900, "would share them"),
])  # fmt: skip
def test_more_workers_are_advice_where_a_core_is_left(waited: int | None, busy: int | None, word: str) -> None:
    cores = CoreUse(sampled_ns=SPAN, waited_ns=None if waited is None else 1000 * waited, host_busy_permille=busy)
    (finding,) = findings_of([msgspec.structs.replace(rank(0, loading=400), cores=cores)])
    assert word in finding.advice


@pytest.mark.parametrize(("busy", "lengths", "found"), [
    ([1000, 970], (100, 150, 200, 130, 170), [333]),
    ([1000, None], (100, 150, 200, 130, 170), []),
    ([1000, 940], (100, 150, 200, 130, 170), []),
    ([1000, 1000], (100, 101, 102, 100, 104), []),
    ([1000, 1000], (100, 200), []),  # too few to tell what one takes
])  # fmt: skip
def test_without_samples_of_the_threads_full_hosts_and_uneven_iterations_tell(
    busy: list[int | None], lengths: tuple[int, ...], found: list[int]
) -> None:
    iterations = [Iteration(index=at, start_ns=0, duration_ns=length) for at, length in enumerate(lengths)]
    ranks = [
        msgspec.structs.replace(rank(number), iterations=iterations, cores=CoreUse(host_busy_permille=permille))
        for number, permille in enumerate(busy)
    ]
    findings = findings_of(ranks)
    assert [(one.kind, one.gain_permille) for one in findings] == [("cpu_contention", gain) for gain in found]


@pytest.mark.parametrize(("transfer", "waited", "word"), [
    (0.8, 60, "a core for sending"), (0.8, 40, "send less often"), (0.8, None, "send less often"),
    (0.2, 60, "even over the ranks"), (None, 60, "begin the longest together"),
])  # fmt: skip
def test_a_core_for_sending_is_advice_where_cores_are_missing(
    transfer: float | None, waited: int | None, word: str
) -> None:
    ranks = [rank(0, exposed=400, waited=waited), rank(1, exposed=400, waited=waited)]
    total = KindTotal(
        kind="cpu",
        time_basis="host",
        ranks=2,
        time_ns=TimeBreakdown(span=2 * SPAN, exposed_communication=800_000),
    )
    found = Stragglers(verdict="nobody", transfer_share=transfer)
    (finding,) = find_findings(Report(totals=[total], ranks=ranks, stragglers=found))
    assert word in finding.advice
