"""Candidates that noise leaves open are said with an interval, and so many iterations as would decide do decide."""

import math

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.margins import UNSURE, measure_margins
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.undecided import find_power
from fleetprof_analyzer.job.student import student_quantile, student_tail
from fleetprof_analyzer.words.verdict_reasons import MOST_ITERATIONS, say_iterations
from fleetprof_api.report.stragglers import Stragglers
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of
from hypothesis import given
from hypothesis import strategies as st

LATE = 2
LENGTH_NS = 100_000_000


@pytest.mark.parametrize(
    ("t", "freedom", "chance"),
    [(0, 3, 1.0), (12.706, 1, 0.05), (2.776, 4, 0.05), (4.604, 4, 0.01), (2.0, 10**4, 0.04553)],
)
def test_the_tails_of_student(t: float, freedom: int, chance: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(chance, rel=3e-3)
    if chance < 1:
        assert student_quantile(chance, freedom) == pytest.approx(t, rel=3e-3)


@pytest.mark.parametrize("t", [1e-6, 0.01, 0.5, 1, 1.5, 3, 12.7, 400, 1e6])
def test_the_tails_are_those_of_their_formulas(t: float) -> None:
    one_degree = 2 / math.pi * math.atan2(1, t)
    two_degrees = 2 / (math.hypot(t, math.sqrt(2)) * (math.hypot(t, math.sqrt(2)) + t))
    assert [student_tail(t, freedom) for freedom in (1, 2)] == pytest.approx([one_degree, two_degrees], rel=1e-9)


@given(freedom=st.floats(1, 1e5), chance=st.floats(1e-5, 0.999))
def test_a_quantile_has_its_tail(freedom: float, chance: float) -> None:
    assert student_tail(student_quantile(chance, freedom), freedom) == pytest.approx(chance, rel=1e-6)


def table_of(own_ns: np.ndarray) -> OwnTime:
    nothing, unknown = np.zeros(own_ns.shape, np.int64), np.full(own_ns.shape, np.nan)
    parts = {"busy": own_ns.astype(np.int64), "data": nothing, "collection": nothing, "host": nothing}
    return OwnTime(
        role=np.zeros(len(own_ns), np.int64), own_ns=own_ns.astype(np.int64), parts_ns=parts, host_ns=nothing,
        host_parts_ns={}, pause_ns=nothing, quiet_ns=nothing, work=unknown, clock_megahertz=unknown,
    )  # fmt: skip


def noise(kind: str, source: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Noise of mean 0 and deviation 1."""
    if kind == "even":
        return source.standard_normal(shape)
    if kind == "skewed":
        drawn = np.exp(0.8 * source.standard_normal(shape))
        skewed: np.ndarray = (drawn - np.exp(0.32)) / np.sqrt((np.exp(0.64) - 1) * np.exp(0.64))
        return skewed
    drawn = source.standard_normal((shape[0], shape[1] + 20))
    for step in range(1, drawn.shape[1]):  # each iteration resembles the one before
        drawn[:, step] = 0.3 * drawn[:, step - 1] + np.sqrt(1 - 0.09) * drawn[:, step]
    return drawn[:, 20:]


@pytest.mark.parametrize("kind", ["even", "skewed", "dependent"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_interval_of_a_candidate_holds_the_truth(kind: str, ranks: int) -> None:
    """Ten iterations, noise of 9 %, a rank that takes 8 % longer: 19 of 20 intervals at least hold 8 %."""
    source = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        own = LENGTH_NS * (1 + 0.09 * noise(kind, source, (ranks, 10)))
        own[1] += 0.08 * LENGTH_NS
        margins = measure_margins(table_of(own))
        held += abs(margins.mean_ns[1] - 0.08 * LENGTH_NS) <= margins.reach_ns(UNSURE)[1]
    assert held >= 0.95 * 200 - 8  # and two deviations of such a count


def judged(iterations: int, seed: int, factor: float = 1.3) -> Stragglers:
    """Four ranks on which other programs run; one of them is slower by `factor` on top of that."""
    shape = JobShape(dp=4, layers=1, iterations=iterations, launch_share=0.2)
    device = np.exp(0.2 * np.random.default_rng([seed, iterations]).standard_normal((4, iterations)))
    device[LATE] *= factor
    job = PlantedJob(shape, PlantedFault("slow_gpu", LATE, device=device), seed)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), seed)))
    assert found is not None
    return found


def test_what_would_decide_does() -> None:
    """If ten iterations leave it open, as many as are named there name the rank, in most cases."""
    undecided, tried, decided = 0, 0, 0
    for seed in range(16):
        found = judged(10, seed)
        assert all(one.rank == LATE for one in found.ranks)
        if found.candidate is None:
            continue
        assert (found.verdict, found.ranks, found.candidate.rank) == ("undecided", [], LATE)
        assert found.candidate.iterations == 10 < found.candidate.iterations_needed
        assert found.candidate.gain_low < found.candidate.gain < found.candidate.gain_high
        undecided += 1
        if found.candidate.iterations_needed <= MOST_ITERATIONS:
            tried += 1
            decided += [one.rank for one in judged(found.candidate.iterations_needed, seed).ranks] == [LATE]
    assert undecided >= 8
    assert decided > tried / 2


def test_noise_alone_names_nobody_and_says_what_would_have_shown() -> None:
    of_seeds = [judged(10, seed, factor=1.0) for seed in range(10)]
    assert all(found.ranks == [] for found in of_seeds)
    assert sum(found.candidate is not None for found in of_seeds) <= 3
    shown = [found.smallest_gain for found in of_seeds if found.smallest_gain is not None]
    assert all(0.1 < gain < 1 for gain in shown)
    assert len(shown) >= 7


def test_as_many_iterations_as_would_lower_the_floor_do() -> None:
    """Noise of 3 % around ranks that are alike: what ten iterations would need shows in as many as the power says."""
    source = np.random.default_rng(7)
    own = LENGTH_NS * (1 + 0.03 * source.standard_normal((8, 400)))
    few = find_power(table_of(own[:, :10]), LENGTH_NS, 0.01, set())
    assert few.smallest_gain is not None
    assert few.lasting_gain is not None
    assert few.low_floor_iterations is not None
    assert few.lasting_gain < 0.05 < few.smallest_gain
    assert 10 < few.low_floor_iterations < 400
    more = find_power(table_of(own[:, : few.low_floor_iterations]), LENGTH_NS, 0.01, set())
    assert more.smallest_gain == pytest.approx(0.05, abs=0.01)


def test_no_number_of_iterations_lowers_a_floor_that_ranks_make_which_differ() -> None:
    own = LENGTH_NS * (1 + 0.05 * np.random.default_rng(7).standard_normal((8, 1))) * np.ones((8, 10))
    power = find_power(table_of(own), LENGTH_NS, 0.01, set())
    assert power.low_floor_iterations is None
    assert power.smallest_gain == pytest.approx(power.lasting_gain)


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (13, "about 13 iterations would decide"),
        (41, "about 45 iterations would decide"),
        (101, "more than the 100 iterations of the longest capture would be needed to decide"),
    ],
)
def test_how_many_iterations_would_decide(needed: int, words: str) -> None:
    assert say_iterations(needed) == words


@pytest.mark.parametrize(("deviation", "more", "hidden"), [(0.5, 0.4, True), (0.05, 0.0, False), (0.5, 0.0, False)])
def test_where_noise_would_hide_a_large_fault_the_foremost_rank_is_no_certain_nobody(
    deviation: float, more: float, hidden: bool
) -> None:
    """Ten iterations of four ranks: a mean of two fifths beyond the others' is within such noise."""
    own = LENGTH_NS * (1 + deviation * np.random.default_rng(2).standard_normal((4, 10)))
    own -= own.mean(axis=1)[:, None] - LENGTH_NS
    own[1] += more * LENGTH_NS
    power = find_power(table_of(own), 2.0 * LENGTH_NS, 0.05, set())
    assert (power.hidden is not None) == hidden
    if power.hidden is not None:
        assert power.hidden.rank == 1
        assert power.hidden.gain_low < 0 < power.hidden.gain < power.hidden.gain_high
        assert power.hidden.iterations < power.hidden.iterations_needed


# What ranks wait for a core, and what rank 0 takes beside: iterations of a full machine, ms.
WAITED_MS = [[35, 75, 34, 2, 13, 31, 28, 45, 13, 33], [9, 11, 31, 47, 46, 45, 28, 39, 113, 63]]
CHECKPOINT_MS = [29, 19, 110, 10, 6, 78, 36, 12, 103, 12]
EVEN_MS = [22, 12, 12, 16, 10, 36, 14, 10, 13, 16]


@pytest.mark.parametrize("own_ms", [CHECKPOINT_MS, EVEN_MS])
def test_waits_for_a_core_that_hide_everything_leave_no_room_for_the_word_nobody(own_ms: list[int]) -> None:
    own = np.array(WAITED_MS) * 1e6 + np.array([own_ms, EVEN_MS]) * 1e6
    power = find_power(table_of(own), 90e6, 0.05, set())
    assert (power.candidate, power.hides_all) == (None, True)
