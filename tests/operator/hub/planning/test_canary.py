"""The harm of a canary: its recorded iterations against what the job makes of them by itself.

Each job is the lengths of its iterations; a recording may make those that it touches longer. What is asked is what the
ledger ends with: both sides of the decision, the sidecar's measurement and the hub's verdict, as they are.
"""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canary, Ledger, LedgerEntry, RankState, TimeCost
from fleetprof_operator.hub.ledger.canary_line import CanaryLine
from fleetprof_operator.hub.planning import canary as rules
from fleetprof_operator.hub.planning.plan import Plan
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_sidecar.capture.process_capture import RecordedSpan, Terms
from fleetprof_sidecar.samples.time_cost import measure_time
from hypothesis import given
from hypothesis import strategies as st

MS, S = 10**6, 10**9
LIMIT = 200  # percent, what limits.maxSlowdownPercent is unless it is asked for otherwise
HISTORY = 512  # steps that the agent sends from before an order
TARGET = RankTarget(
    rank=0, process=pb.Process(process_id="p"), rank_source="", sidecar_id="s", pod_name="", node_name=""
)

Own = Callable[[int], int]
"""A job: how long it makes its iteration of this number, nanoseconds."""
Harm = Callable[[int, int], int]
"""A recording: how long an iteration takes that would take so long, and how many were recorded before it."""


def no_harm(length_ns: int, _: int) -> int:
    return length_ns


class Rank:
    """The rank of a job that records canaries until there is a verdict; `at`: how many iterations it has made."""

    def __init__(self, own: Own, at: int, harm: Harm = no_harm) -> None:
        self._own, self._harm = own, harm
        self._ends = {0: 0}
        self._recorded: list[RecordedSpan] = []
        self._first = 0
        self._run(at)
        self.line = CanaryLine(Ledger(uid="u", name="n", namespace="team"))
        self._record()
        while rules.can_repeat(canary := self.line.known, LIMIT):
            self._record()
        self.harm, self.message = rules.find_harm(canary, LIMIT), rules.say_unharmed(canary, LIMIT)
        self.recordings = len(self._recorded)

    def _run(self, until: int, recorded: int = -1) -> None:
        for step in range(len(self._ends), until + 1):
            length = self._own(step)
            if step == recorded:
                length = self._harm(length, len(self._recorded))
            self._ends[step] = self._ends[step - 1] + length

    def _record(self) -> None:
        ordered = len(self._ends) - 1
        plan = _plan(foretell(self._own, ordered))
        first = rules.set_apart(plan, self.line.known, self._first, 1).first_step
        assert first is not None
        self._first = first
        self._run(first + 2, recorded=first)
        terms = Terms(capture_id="c", process_id="p", rank=0, first_step=first, iterations=1, recorded=self._recorded)
        ends = {step: end for step, end in self._ends.items() if step > ordered - HISTORY}
        written = self._ends[first + 1]
        self.line.begin(TARGET, 1)
        cost = measure_time(ends, terms, written)
        self.line.apply(
            pb.CaptureEvent(
                process_id="p",
                state=pb.WRITTEN,
                time_cost=pb.TimeCost(**{name: getattr(cost, name) for name in TimeCost.__struct_fields__}),
            )
        )
        one = RecordedSpan(from_step=terms.touched_from_step, from_unix_ns=self._ends[ordered], until_unix_ns=written)
        self._recorded = [*self._recorded, one]


def foretell(own: Own, ordered: int) -> int:
    """The step that the hub plans when this one was the last, by the median of the latest three: some seconds ahead."""
    return ordered + 2 + 3 * S // sorted(own(step) for step in range(ordered - 2, ordered + 1))[1]


def _plan(first_step: int) -> Plan:
    fields = {"start_unix_ns": 0, "deliver_until_unix_ns": 0, "duration_ns": 0}
    return Plan(mode="step", first_step=first_step, explanation="", **fields)


def make_job(random: Random) -> tuple[Own, str]:
    """A job with pauses of its own, each n-th iteration or about, up to 30 % longer or shorter."""
    usual = random.choice((5, 25, 100, 400, 2000)) * MS
    seed = random.random()
    pauses: list[tuple[str, int, int]] = []
    for kind, periods in (
        ("checkpoint", (2, 4, 10, 50, 300)),
        ("collector", (3, 30, 100)),
        ("evaluation", (20, 500, 2000)),
    ):
        if random.random() < 0.6 or (not pauses and kind == "evaluation"):
            length = usual * random.choice((3, 10, 40)) + random.choice((0, 1, 20)) * S // 10
            pauses.append((kind, random.choice(periods), length))
    compiles = random.random() < 0.3

    @cache
    def own(step: int) -> int:
        draw = Random(f"{seed} {step}")
        length = usual * draw.lognormvariate(0, 0.08) * (2 if draw.random() < 0.01 else 1)
        for kind, period, pause in pauses:
            # A collector counts allocations, not iterations.
            comes = draw.random() * period < 1 if kind == "collector" else step % period == period - 1
            length += pause * draw.uniform(0.7, 1.3) if comes else 0
        return int(length + (20 * S if compiles and step <= 2 else 0))

    return own, f"{usual // MS} ms, {pauses}"


@pytest.mark.parametrize("meets_pause", [False, True])
def test_none_of_200_jobs_is_refused_for_pauses_of_its_own(meets_pause: bool) -> None:
    """Nor if the canary records a pause first."""
    random, refused = Random(1), []
    for _ in range(200):
        own, job = make_job(random)
        at = int(2 ** random.uniform(2, 11))
        if meets_pause:
            lengths = {late: own(foretell(own, at + late)) for late in range(60)}
            at += max(lengths, key=lambda late: lengths[late])
        rank = Rank(own, at)
        refused += [(job, rank.harm)] if rank.harm else []
    assert not refused


def test_each_recording_that_does_harm_is_refused_in_the_same_jobs() -> None:
    """Its recording takes so much longer than whatever the job did before."""
    random, passed = Random(2), []
    for _ in range(50):
        own, job = make_job(random)
        at = int(2 ** random.uniform(4, 11))
        longest = max(own(step) for step in range(3, at + 150))
        rank = Rank(own, at, harm=lambda length, _, more=3 * longest: length + more)  # type: ignore[misc]
        passed += [] if rank.harm else [(job, at, rank.message)]
    assert not passed


def every(period: int, pause_ns: int, usual_ns: int = 25 * MS) -> Own:
    return lambda step: usual_ns + (pause_ns if step % period == 0 else 0)


@pytest.mark.parametrize("at", [3, 30, 3000])
@pytest.mark.parametrize("times", [4, 10])
@pytest.mark.parametrize(
    "own", [every(1, 0), every(4, 300 * MS), every(10, 20 * S), every(60, S), every(500, 60 * S), every(2, 70 * MS)]
)
def test_a_recording_that_makes_iterations_longer_is_harm_beside_pauses_as_well(own: Own, times: int, at: int) -> None:
    assert Rank(own, at, harm=lambda length, _: times * length).harm


@given(period=st.integers(2, 100), beats=st.integers(10, 25), offset=st.integers(0, 100), factor=st.floats(4, 100))
def test_a_pause_that_keeps_its_rhythm_is_never_harm(period: int, beats: int, offset: int, factor: float) -> None:
    """Wherever the canary falls; the pauses are up to 30 % longer and shorter."""

    def own(step: int) -> int:
        return int(25 * MS * (factor if step % period == 0 else 1) * Random(step).uniform(0.7, 1.3))

    assert not Rank(own, period * beats + offset).harm


def turn(own: Own, at: int, factor: float) -> Own:
    """A job whose pace changes for good at that iteration: other data, another stage of training, another batch."""
    return lambda step: int(own(step) * (factor if step >= at else 1))


def unsteady(usual_ns: int) -> Own:
    return lambda step: int(usual_ns * Random(step).uniform(0.85, 1.2))


PACES = [every(1, 0), every(1, 0, usual_ns=2 * S), every(5, 75 * MS), unsteady(25 * MS), unsteady(400 * MS)]


@pytest.mark.parametrize("later", [-400, -100, -30, -10, -5, -1, 1])  # than the last step before the order
@pytest.mark.parametrize("factor", [3.5, 10, 40])
@pytest.mark.parametrize("own", PACES)
def test_a_job_that_has_become_slower_is_not_harmed_by_that(own: Own, factor: float, later: int) -> None:
    assert Rank(turn(own, 600 + later, factor), 600).harm == ""


@pytest.mark.parametrize("later", [-400, -100, -30, -10])
@pytest.mark.parametrize("factor", [0.25, 4])
@pytest.mark.parametrize("own", [PACES[0], PACES[1], PACES[3], PACES[4]])
def test_harm_is_measured_by_the_pace_that_the_job_has_now(own: Own, factor: float, later: int) -> None:
    assert Rank(turn(own, 600 + later, factor), 600, harm=lambda length, _: 4 * length).harm


@pytest.mark.parametrize("own", PACES)
def test_a_job_that_is_slower_for_good_from_the_recording_on_is_harmed(own: Own) -> None:
    recorded = foretell(own, 600)
    assert Rank(turn(own, recorded, 10), 600).harm


@pytest.mark.parametrize("length_ns", [20 * S, 100 * MS])
def test_what_only_a_first_recording_takes_is_no_harm(length_ns: int) -> None:
    rank = Rank(every(1, 0), 100, harm=lambda length, number: length if number else length_ns)
    assert (rank.harm, rank.recordings) == ("", 2)


def _canary(*costs: TimeCost, **fields: Any) -> Canary:
    entry = LedgerEntry(rank=0, process_id="p", state=RankState.WRITTEN, time_cost=costs[-1], **fields)
    return Canary(tries=len(costs), earlier=list(costs[:-1]), entry=entry)


def _cost(took_ns: int, longest_ns: int, alike: int, compared: int, rhythm: int = 0, **more: int) -> TimeCost:
    named = {"iteration_ns": took_ns, "longest_before_ns": longest_ns, "iteration_before_ns": 25 * MS, **more}
    return TimeCost(alike_before=alike, compared_before=compared, rhythm_iterations=rhythm, **named)


USUAL = _cost(26 * MS, 31 * MS, 500, 500)


@pytest.mark.parametrize(
    ("costs", "says"),
    [
        ([USUAL], "took 26 ms, 25 ms before (+4 %)"),
        (
            [_cost(24 * MS, 31 * MS, 500, 500, stall_ns=1449 * MS)],
            "24 ms, 25 ms before (no longer), then a stall of 1.45 s",
        ),
        (
            [_cost(301 * MS, 285 * MS, 128, 128, 4), USUAL],
            "took 26 ms, 25 ms before (+4 %); 301 ms in a try before, a pause of the job's own: 128 of 128 iterations "
            "before in the job's rhythm of 4 iterations took about as long, 285 ms at most",
        ),
        (
            [_cost(1500 * S, 31 * MS, 0, 500), USUAL],
            "; 1500 s in a try before, where 31 ms was the longest until then, and not again",
        ),
        (
            [_cost(301 * MS, 285 * MS, 90, 300)] * 5,
            "took 301 ms, 25 ms before (+1104 %), a pause of the job's own: 90 of 300 iterations before took about as "
            "long, 285 ms at most",
        ),
    ],
)
def test_an_unharmed_one_is_said_with_its_figures_and_the_jobs_own(costs: list[TimeCost], says: str) -> None:
    canary = _canary(*costs)
    assert (rules.find_harm(canary, LIMIT), rules.can_repeat(canary, LIMIT)) == ("", False)
    assert rules.say_unharmed(canary, LIMIT).endswith(says)


@pytest.mark.parametrize(
    ("costs", "says"),
    [
        (
            [_cost(999_600_000, 31 * MS, 0, 512), _cost(1449 * MS, 31 * MS, 0, 530)],
            "its 2 recorded iterations took 1 s and 1.45 s where 25 ms were usual and 31 ms the longest before: 3898 % "
            "slower, limits.maxSlowdownPercent allows 200",
        ),
        (
            [_cost(275 * MS, 31 * MS, 0, 384, 4)] * 2,
            "took 275 ms and 275 ms where 25 ms were usual and 31 ms the longest before outside of the job's rhythm of "
            "4 iterations: 1000 % slower, limits.maxSlowdownPercent allows 200",
        ),
        (
            [_cost(275 * MS, 31 * MS, 0, 2)] * 5,
            "its 5 recorded iterations took 275 ms, 275 ms, 275 ms, 275 ms and 275 ms where",
        ),
    ],
)
def test_a_harmed_one_is_said_with_its_figures_and_the_jobs_own(costs: list[TimeCost], says: str) -> None:
    canary = _canary(*costs)
    assert says in rules.find_harm(canary, LIMIT)
    assert not rules.can_repeat(canary, LIMIT)
    assert rules.find_harm(_canary(*costs[:-1]), LIMIT) == ""
    assert rules.can_repeat(_canary(*costs[:-1]), LIMIT)


def test_without_a_limit_nothing_is_harm() -> None:
    canary = _canary(*[_cost(275 * MS, 31 * MS, 0, 512)] * 2)
    assert (rules.find_harm(canary, 0), rules.can_repeat(canary, 0)) == ("", False)


@pytest.mark.parametrize(
    ("first_step", "alike", "planned"),
    [
        (108, 128, 109), (107, 128, 107), (108, 1, 108),
        (103, 1, 105), (105, 128, 105),  # two iterations that the job makes by itself lie between
    ],
)  # fmt: skip
def test_the_next_try_tells_more_than_the_one_before(first_step: int, alike: int, planned: int) -> None:
    canary = _canary(_cost(301 * MS, 285 * MS, alike, 128, 4))
    assert rules.set_apart(_plan(first_step), canary, 100, 1).first_step == planned
