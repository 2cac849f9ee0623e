"""The cost of a capture is what was planted; a verdict is given only where there is enough behind it."""

import itertools
import random

import msgspec
import pytest
from fleetprof_analyzer.job.cost import measure_cost
from fleetprof_analyzer.rank.step_times import StepTimes
from fleetprof_analyzer.words.recording import judge_residue
from fleetprof_api.report.capture_cost import CaptureCost, Interval, Phase
from fleetprof_api.samples import StepColumns

MS = 1_000_000
START = 1_795_000_000_000_000_000


def job(
    *,
    before: int = 40,
    during: int = 5,
    after: int = 40,
    typical: float = 10.0,
    slowdown: float = 1.3,
    stall: float = 80.0,
    residue: float = 1.0,
    noise: float = 0.02,
    seed: int = 0,
    ranks: int = 4,
    per_iteration: int = 1,
) -> list[StepTimes]:
    make = random.Random(seed)

    def around(mean: float) -> float:
        return mean * make.gauss(1, noise)

    lengths = [around(typical) for _ in range(before)] + [around(typical * slowdown) for _ in range(during)]
    lengths += [typical + stall] + [around(typical * residue) for _ in range(after)]
    iteration_ends = [START]
    for length in lengths:
        iteration_ends.append(iteration_ends[-1] + round(length * MS))
    ends, first = [START], 1
    for begin, end in itertools.pairwise(iteration_ends):
        ends += [begin + (end - begin) * part // per_iteration for part in range(1, per_iteration + 1)]
    first = per_iteration * 100
    steps = list(range(first, first + len(ends)))
    return [
        StepTimes(
            steps=StepColumns(step=steps, end_unix_ns=[end + rank * 50_000 for end in ends]),
            steps_per_iteration=per_iteration,
            armed_unix_ns=iteration_ends[before] + MS,
            window_start_unix_ns=iteration_ends[before],
            window_end_unix_ns=iteration_ends[before + during],
            written_unix_ns=iteration_ends[before + during + 1] - MS,
            first_step=first + before * per_iteration + 1,
            last_step=first + (before + during) * per_iteration,
        )
        for rank in range(ranks)
    ]


def measured(**planted: float) -> CaptureCost:
    cost = measure_cost(job(**planted))  # type: ignore[arg-type]
    assert cost is not None
    return cost


def test_every_iteration_falls_in_its_phase() -> None:
    cost = measured()
    assert (cost.before.iterations, cost.during.iterations, cost.after.iterations) == (40, 5, 40)
    assert cost.ranks == 4


def test_an_iteration_whose_modules_were_marked_is_in_no_phase() -> None:
    ranks = [msgspec.structs.replace(rank, marked_iterations=1) for rank in job()]
    cost = measure_cost(ranks)
    assert cost is not None
    assert (cost.before.iterations, cost.during.iterations, cost.after.iterations) == (40, 5, 40)
    assert cost.stall_ns is None  # the planted one is in it


def test_slowdown_stall_and_residue_are_what_was_planted() -> None:
    cost = measured(noise=0.001)
    assert cost.during_ratio == pytest.approx(1.3, rel=0.002)
    assert cost.stall_ns == pytest.approx(80 * MS, rel=0.01)
    assert cost.residue_ratio == pytest.approx(0, abs=0.002)
    assert cost.before.median_ns == pytest.approx(10 * MS, rel=0.002)
    interval = cost.during_ratio_interval
    assert interval is not None
    assert interval.low <= 1.3 <= interval.high


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        (None, "too few iterations to tell"),
        ((0.01, 0.05), "iterations take longer than before"),
        ((-0.05, -0.01), "iterations take less time than before"),
        ((-0.02, 0.015), "none"),
        ((-0.1, 0.06), "cannot be told from noise; about 500 iterations afterwards would tell"),
        ((-0.01, 0.03), "cannot be told from noise; about 45 iterations afterwards would tell"),
    ],
)
def test_no_residue_is_said_only_where_that_was_shown(interval: tuple[float, float] | None, says: str) -> None:
    within = None if interval is None else Interval(low=interval[0], high=interval[1])
    assert (
        judge_residue(msgspec.structs.replace(measured(), residue_interval=within, after=Phase(iterations=20))) == says
    )


def test_no_residue_is_called_zero_in_most_runs_and_a_real_one_in_none() -> None:
    """A 95 % interval may miss in one run of twenty."""
    verdicts = [measured(seed=seed).residue_is_zero for seed in range(40)]
    assert verdicts.count(True) >= 34
    assert [measured(seed=seed, residue=1.1).residue_is_zero for seed in range(10)] == [False] * 10


def test_two_optimizer_steps_are_one_iteration() -> None:
    cost = measured(per_iteration=2, noise=0.001)
    assert (cost.before.iterations, cost.during.iterations, cost.after.iterations) == (40, 5, 40)
    assert cost.before.median_ns == pytest.approx(10 * MS, rel=0.002)


@pytest.mark.parametrize(("during", "interval"), [(4, False), (5, True)])
def test_below_five_iterations_there_is_no_interval(during: int, interval: bool) -> None:
    cost = measured(during=during)
    assert cost.during_ratio is not None
    assert (cost.during_ratio_interval is not None) is interval


def test_without_iterations_afterwards_there_is_no_verdict() -> None:
    cost = measured(after=0)
    assert (cost.residue_ratio, cost.residue_interval, cost.residue_is_zero) == (None, None, None)


def test_the_same_input_gives_the_same_intervals() -> None:
    assert measured(seed=3) == measured(seed=3)


def test_without_step_times_there_is_no_cost() -> None:
    assert measure_cost([]) is None
    assert measure_cost([StepTimes(steps=StepColumns())]) is None


def test_without_numbers_the_clock_tells_the_phases() -> None:
    ranks = [StepTimes(**{f: getattr(r, f) for f in StepTimes.__struct_fields__} | {"first_step": None}) for r in job()]
    cost = measure_cost(ranks)
    assert cost is not None
    assert (cost.before.iterations, cost.during.iterations, cost.after.iterations) == (40, 5, 40)
