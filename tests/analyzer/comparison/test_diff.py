"""Two reports compared: planted changes are found, noise is none, and what cannot be compared is said."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.assembly.diff import compare
from fleetprof_analyzer.comparison.comparison import (
    LEVEL,
    LEVEL_OF_KERNELS,
    LEVEL_OF_MEASURES,
    LEVEL_OF_UNPROFILED,
    MINIMUM_EFFECT,
)
from fleetprof_analyzer.comparison.significance import FEWEST, find_differences
from fleetprof_api.report.capture_cost import CaptureCost, Phase
from fleetprof_api.report.diff import Diff, MeasureChange, json_schema, write_diff
from fleetprof_api.report.report import Iteration
from fleetprof_api.report.stragglers import Straggler, Stragglers
from harness.reference.simulated_reports import COMPUTE, EXPOSED, MS, simulate
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[3]
TRIALS = 100


def row(diff: Diff, measure: str) -> MeasureChange:
    return next(change for change in diff.measures if change.measure == measure)


def changed(diff: Diff) -> list[str]:
    return [change.measure for change in diff.measures if change.verdict in ("more", "less")]


# ---------------------------------------------------------------- the promise


@pytest.mark.parametrize(
    ("iterations", "noise", "dependence", "heavy"),
    [
        (5, 0.01, 0.0, False),
        (5, 0.05, 0.0, False),
        (5, 0.05, 0.3, False),
        (5, 0.05, 0.5, False),
        (10, 0.05, 0.3, True),
        (20, 0.1, 0.5, False),
        (50, 0.2, 0.3, True),
    ],
)
def test_two_equal_runs_are_called_different_no_more_often_than_said(
    iterations: int, noise: float, dependence: float, heavy: bool
) -> None:
    """From 100 pairs at a level of 5 %, eleven or more would come in one test of a hundred."""
    alarms = 0
    for trial in range(TRIALS):
        before, after = (
            simulate(2 * trial + side, ranks=2, iterations=iterations, noise=noise, dependence=dependence, heavy=heavy)
            for side in (0, 1)
        )
        found = compare(before, after)
        alarms += bool(changed(found) or [kernel for kernel in found.kernels if kernel.verdict in ("more", "less")])
    assert LEVEL == 0.05
    assert alarms <= 10


@pytest.mark.parametrize(("iterations", "noise", "found_at_least"), [(4, 0.005, 28), (5, 0.01, 28), (10, 0.02, 28)])
def test_five_percent_more_are_found(iterations: int, noise: float, found_at_least: int) -> None:
    """Compute that takes 7.2 % longer makes the iteration 5 % longer."""
    found = 0
    for trial in range(30):
        before = simulate(2 * trial, iterations=iterations, noise=noise)
        after = simulate(2 * trial + 1, iterations=iterations, noise=noise, compute=1 + 5 / 70)
        diff = compare(before, after)
        found += diff.verdict == "slower" and {"iteration", "compute"} <= set(changed(diff))
        assert row(diff, "exposed_communication").verdict == "not_shown"
    assert found >= found_at_least


def test_a_change_below_the_minimum_is_none_however_sure() -> None:
    before, after = (simulate(seed, iterations=50, noise=0.001, compute=factor) for seed, factor in ((1, 1), (2, 1.02)))
    diff = compare(before, after)
    assert row(diff, "iteration").p is not None
    assert (row(diff, "iteration").p or 1) < 0.001
    assert (diff.verdict, changed(diff), MINIMUM_EFFECT) == ("not_shown", [], 0.02)
    assert diff.change == pytest.approx(0.014, abs=0.002)


def test_what_got_shorter_and_what_grew_are_told_apart() -> None:
    diff = compare(simulate(1), simulate(2, compute=0.8, exposed=1.4))
    assert diff.verdict == "faster"
    assert {name: row(diff, name).verdict for name in ("iteration", "compute", "exposed_communication", "idle")} == {
        "iteration": "less", "compute": "less", "exposed_communication": "more", "idle": "not_shown",
    }  # fmt: skip
    assert row(diff, "compute").difference == pytest.approx(-0.2 * COMPUTE, rel=0.05)
    exposed = row(diff, "exposed_communication")
    assert exposed.low is not None
    assert exposed.high is not None
    assert exposed.low <= 0.4 * EXPOSED <= exposed.high
    parts = sum(row(diff, name).difference for name in ("compute", "exposed_communication", "idle"))
    assert parts == pytest.approx(row(diff, "iteration").difference, abs=5)


def test_intervals_hold_all_differences_together_in_most_comparisons() -> None:
    held = 0
    for trial in range(60):
        diff = compare(simulate(2 * trial, noise=0.03), simulate(2 * trial + 1, noise=0.03, compute=1.1))
        truth = {"iteration": 0.1 * COMPUTE, "compute": 0.1 * COMPUTE, "exposed_communication": 0, "idle": 0}
        rows = {name: row(diff, name) for name in truth}
        held += all((rows[name].low or 0) <= value <= (rows[name].high or 0) for name, value in truth.items())
    assert held >= 55


def test_an_interval_leaves_out_zero_where_p_is_below_the_level() -> None:
    for seed in range(40):
        rows = compare(simulate(2 * seed, noise=0.02), simulate(2 * seed + 1, noise=0.02, compute=1.03)).measures
        for one in rows:
            assert one.low is not None
            assert one.high is not None
            assert one.p is not None
            assert (one.p <= LEVEL_OF_MEASURES) is not (one.low <= 0 <= one.high)


@pytest.mark.parametrize(("before", "after"), [(3, 50), (50, 3), (1, 1)])
def test_too_few_iterations_give_numbers_and_no_verdict(before: int, after: int) -> None:
    diff = compare(simulate(1, iterations=before), simulate(2, iterations=after, compute=1.5))
    assert (diff.comparable, diff.verdict) == (True, "not_judged")
    assert {change.verdict for change in diff.measures} == {"not_judged"}
    assert {kernel.verdict for kernel in diff.kernels} == {"not_judged"}
    assert row(diff, "compute").difference > 0.4 * COMPUTE
    assert any("at least 4 are needed" in note for note in diff.notes)


def test_the_same_reports_give_the_same_comparison() -> None:
    before, after = simulate(1, iterations=12), simulate(2, iterations=12, compute=1.05)
    assert write_diff(compare(before, after)) == write_diff(compare(before, after))


def test_a_report_does_not_differ_from_itself() -> None:
    report = simulate(3)
    diff = compare(report, report)
    assert diff.verdict == "not_shown"
    assert {change.difference for change in diff.measures} == {0}
    assert {change.p for change in diff.measures} == {1.0}


def test_an_iteration_that_was_cut_is_not_compared() -> None:
    report = simulate(1, iterations=5)
    cut = msgspec.structs.replace(
        report, ranks=[msgspec.structs.replace(rank, iterations=_cut_first(rank.iterations)) for rank in report.ranks]
    )
    diff = compare(cut, simulate(2, iterations=5))
    assert (diff.before.iterations, diff.before.first_iteration, diff.after.iterations) == (4, 101, 5)


def _cut_first(iterations: list[Iteration]) -> list[Iteration]:
    return [msgspec.structs.replace(iterations[0], complete=None, duration_ns=1), *iterations[1:]]


def test_no_statistic_comes_of_fewer_than_four_or_of_nothing_that_varies() -> None:
    ones = np.ones((4, 1))
    assert find_differences(ones[:3], ones, np.ones(1), 0.05) is None
    same = find_differences(ones, ones, np.ones(1), 0.05)
    assert same is not None
    assert same.p.tolist() == [1.0]
    apart = find_differences(ones, ones * 1.1, np.ones(1), 0.05)
    assert apart is not None
    assert apart.p[0] == pytest.approx(2 / 70)


def test_the_pages_say_the_levels_and_limits_that_are_used() -> None:
    page = "".join((ROOT / "docs" / name).read_text() for name in ("diff.md", "measures.md"))
    for phrase in (
        f"`level` {LEVEL}",
        f"**Measures** (level {LEVEL_OF_MEASURES})",
        f"**Unprofiled iteration time** (level {LEVEL_OF_UNPROFILED})",
        f"**Kernels** (level {LEVEL_OF_KERNELS})",
        f"below {100 * MINIMUM_EFFECT:.0f} % of an iteration",
        f"Below {FEWEST} on a side",
    ):
        assert phrase in page
    assert pytest.approx(LEVEL) == LEVEL_OF_MEASURES + LEVEL_OF_KERNELS + LEVEL_OF_UNPROFILED


# ---------------------------------------------------------------- the rest of the comparison


def cost(median_ms: float, spread_ms: float, iterations: int = 200) -> CaptureCost:
    phase = Phase(
        iterations=iterations, median_ns=round(median_ms * MS), median_low_ns=round((median_ms - spread_ms) * MS),
        median_high_ns=round((median_ms + spread_ms) * MS),
    )  # fmt: skip
    return CaptureCost(before=phase, during=Phase(iterations=0), after=Phase(iterations=0))


def test_an_unprofiled_change_that_the_capture_rules_out_is_none() -> None:
    """The captured iterations are equal to 1 %; 30 % more before them is something that came and went."""
    before, after = (
        msgspec.structs.replace(simulate(seed), capture_cost=cost(median, 0.5)) for seed, median in ((1, 100), (2, 130))
    )
    diff = compare(before, after)
    assert diff.unprofiled is not None
    assert (diff.unprofiled.verdict, diff.verdict) == ("more", "not_shown")
    assert diff.notes == [
        "iterations before the captures were longer after the change, captured ones were not: something else that "
        "came and went; capture again"
    ]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (cost(100, 0.5), cost(105, 0.5), "slower"),
        (cost(100, 0.5), cost(95, 0.5), "faster"),
        (cost(100, 0.5), cost(101.5, 0.1), "not_shown"),  # sure, and too small
        (cost(100, 4), cost(105, 4), "not_shown"),  # large, and not sure
        (cost(100, 0.5), cost(105, 0.5, iterations=19), None),  # its interval is too narrow to be trusted
    ],
)
def test_the_unprofiled_iteration_time_goes_before(
    before: CaptureCost, after: CaptureCost, verdict: str | None
) -> None:
    # Iterations that vary by a fifth rule out nothing.
    first, second = (msgspec.structs.replace(simulate(1, noise=0.2), capture_cost=one) for one in (before, after))
    diff = compare(first, second)
    assert diff.unprofiled is not None
    assert diff.verdict == (verdict or "not_shown")
    assert (diff.unprofiled.verdict == "not_judged") is (verdict is None)
    if verdict is not None:
        assert diff.change == pytest.approx((after.before.median_ns or 0) / (before.before.median_ns or 1) - 1)


def test_kernels_and_collectives_are_told_per_rank_and_iteration() -> None:
    diff = compare(simulate(1, iterations=10), simulate(2, iterations=20, compute=1.5, exposed=2))
    assert [(kernel.name, kernel.verdict) for kernel in diff.kernels] == [("gemm", "more"), ("relu", "not_shown")]
    gemm, relu = diff.kernels
    assert (gemm.before_count, gemm.after_count, relu.before_ns, relu.difference_ns) == (10, 10, MS, 0)
    assert gemm.difference_ns == pytest.approx(0.5 * COMPUTE, rel=0.03)
    (collective,) = diff.collectives
    assert (collective.kind, collective.before_count, collective.message_bytes) == ("all_reduce", 1, 1 << 20)
    assert collective.difference_ns == pytest.approx(EXPOSED, rel=0.05)


def test_a_kernel_that_is_new_or_gone_is_listed_without_a_verdict() -> None:
    before, after = simulate(1), simulate(2)
    renamed = [msgspec.structs.replace(after.kernels[0], name="gemm_v2"), after.kernels[1]]
    diff = compare(before, msgspec.structs.replace(after, kernels=renamed))
    assert [(k.name, k.before_count, k.after_count, k.verdict) for k in diff.kernels[:2]] == [
        ("gemm_v2", 0, 10, "not_judged"), ("gemm", 10, 0, "not_judged"),
    ]  # fmt: skip


def test_a_window_by_time_counts_what_it_recorded_beyond_its_iterations() -> None:
    before, after = simulate(1, iterations=10), simulate(2, iterations=10)
    shortened = [msgspec.structs.replace(rank, iterations=rank.iterations[:5]) for rank in after.ranks]
    diff = compare(before, msgspec.structs.replace(after, ranks=shortened))
    assert diff.kernels[0].after_count == pytest.approx(10, rel=0.02)


def test_stragglers_of_both_sides_are_told() -> None:
    late = Stragglers(verdict="straggler", ranks=[Straggler(rank=2, lateness_ns=1, cause="host")], gain=0.2)
    before, after = (
        msgspec.structs.replace(simulate(1), stragglers=found) for found in (late, Stragglers(verdict="nobody"))
    )
    diff = compare(before, after)
    assert diff.stragglers_before is not None
    assert diff.stragglers_after is not None
    first, second = diff.stragglers_before, diff.stragglers_after
    assert (first.verdict, first.ranks, first.causes, first.gain) == ("straggler", [2], ["host"], 0.2)
    assert (second.verdict, second.ranks) == ("nobody", [])


def test_a_comparison_follows_its_published_schema() -> None:
    Draft202012Validator.check_schema(json_schema())
    for after in (simulate(2, compute=1.1), simulate(2, world_size=8)):
        Draft202012Validator(json_schema()).validate(json.loads(write_diff(compare(simulate(1), after))))
