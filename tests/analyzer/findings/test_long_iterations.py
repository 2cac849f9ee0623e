"""Iterations that are long on all ranks: told apart from late ranks, and from hosts ahead of their devices."""

from dataclasses import dataclass

import msgspec
import pytest
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Iteration, KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import LongIterations, StageName, Stages, StageTime
from fleetprof_api.report.stragglers import Straggler, Stragglers

MS = 1_000_000
EVALUATE = PlaceInCode(file="/home/me/train.py", line=41, function="evaluate")
OF_20 = range(100, 120)


@dataclass
class Job:
    """`long`: the numbers of 50 ms among iterations of 10 ms, by rank; `idle_ms`: of the device in a long one."""

    long: list[list[int]]
    numbers: range = OF_20
    idle_ms: int | None = None
    stage: StageName | None = "host"
    place: PlaceInCode | None = EVALUATE

    def rank(self, number: int) -> Rank:
        """One rank of it."""
        lengths = {at: 50 * MS if at in self.long[number] else 10 * MS for at in self.numbers}
        iterations = [
            Iteration(
                index=at, start_ns=0, duration_ns=length,
                time_ns=TimeBreakdown(span=length, idle=(self.idle_ms or 0) * MS if length > 10 * MS else MS),
            )
            for at, length in lengths.items()
        ]  # fmt: skip
        positions = [at - self.numbers[0] for at in self.long[number]]
        found = LongIterations(positions=positions, usual_ns=10 * MS, stage=self.stage, place=self.place)
        kind, basis = ("cpu", "host") if self.idle_ms is None else ("gpu", "device")
        return Rank(
            rank=number, source=str(number), kind=kind, time_basis=basis,  # type: ignore[arg-type]
            time_ns=TimeBreakdown(span=sum(lengths.values())), iterations=iterations,
            stages=Stages(iterations=len(iterations), long_iterations=found if positions else None),
        )  # fmt: skip

    def report(self, stragglers: Stragglers | None = None) -> Report:
        """Its report, with findings in words."""
        ranks = [self.rank(number) for number in range(len(self.long))]
        total = KindTotal(
            kind=ranks[0].kind, time_basis=ranks[0].time_basis, ranks=len(ranks), time_ns=TimeBreakdown(span=1)
        )
        report = Report(totals=[total], ranks=ranks, stragglers=stragglers)
        return Report(totals=[total], ranks=ranks, stragglers=stragglers, findings=find_findings(report))


def long_of(report: Report) -> list[Finding]:
    """The findings of that kind."""
    return [one for one in report.findings if one.kind == "long_iterations"]


@pytest.mark.parametrize(("job", "gain", "message"), [
    (Job([[105, 115]]), 285,
     "2 of 20 iterations (every 10th) take 5 times as long as the others, most of it on the host between stages"),
    (Job([[105, 115], [105, 115]], stage=None), 285,
     "2 of 20 iterations (every 10th) take 5 times as long as the others"),
    (Job([[105, 110]], stage="other"), 285,
     "2 of 20 iterations take 5 times as long as the others, most of it in operators outside of all stages"),
    (Job([[112]], stage="data_loading"), 166,
     "1 of 20 iterations takes 5 times as long as the others, most of it in the stage data loading"),
    (Job([[105, 107, 115], [105, 115, 119]], stage=None), 250,
     "2 of 20 iterations (every 10th) take 5 times as long as the others"),
    (Job([[105, 115]], idle_ms=41, stage=None), 285,
     "2 of 20 iterations (every 10th) take 5 times as long as the others"),
])  # fmt: skip
def test_what_is_told(job: Job, gain: int, message: str) -> None:
    (found,) = long_of(job.report())
    assert (found.message, found.gain_permille, found.place) == (message, gain, EVALUATE)
    assert found.value_ns is not None
    assert found.measure == "ranks.stages.long_iterations"


@pytest.mark.parametrize("job", [
    pytest.param(Job([[]]), id="none is long"),
    pytest.param(Job([[105], []]), id="a rank that nobody waits for"),
    pytest.param(Job([[105], [106]]), id="each rank at another time"),
    pytest.param(Job([[112]], numbers=range(100, 140)), id="a twelfth of the time"),
    pytest.param(Job([[105, 115]], idle_ms=1), id="a host ahead of its device"),
])  # fmt: skip
def test_what_is_not_told(job: Job) -> None:
    assert not long_of(job.report())


def test_positions_that_a_stored_summary_makes_up_are_left_out() -> None:
    (found,) = long_of(Job([[105, 115, 100_000]]).report())
    assert found.message.startswith("2 of 20 iterations")
    assert not long_of(Job([[100_000, 99]]).report())


def test_the_line_is_that_of_a_rank_which_does_not_wait() -> None:
    job = Job([[105, 115], [105, 115]])
    pausing, waiting = job.rank(0), Job(job.long, stage="backward", place=PlaceInCode(file="ddp.py", line=1)).rank(1)
    total = KindTotal(kind="cpu", time_basis="host", ranks=2, time_ns=TimeBreakdown(span=1))
    (found,) = find_findings(Report(totals=[total], ranks=[waiting, pausing]))
    assert found.place == EVALUATE


@pytest.mark.parametrize(("gain", "listed"), [(0.28, False), (0.2, False), (0.1, True)])
def test_a_named_rank_that_explains_them_is_told_alone(gain: float, listed: bool) -> None:
    late = Straggler(rank=1, lateness_ns=1, cause="host", gain=gain)
    stragglers = Stragglers(verdict="straggler", gain=gain, ranks=[late])
    assert bool(long_of(Job([[105, 115], [105, 115]]).report(stragglers))) == listed


@pytest.mark.parametrize(("host_ms", "exposed_ms", "kinds"), [
    pytest.param({105: 40, 115: 40}, 30, ["long_iterations"], id="one cause, one gain"),
    pytest.param({105: 40, 115: 40}, 5, ["exposed_communication", "long_iterations"], id="communication everywhere"),
    pytest.param(dict.fromkeys(OF_20, 6), 30, ["python", "long_iterations"], id="silences everywhere"),
])  # fmt: skip
def test_what_makes_iterations_long_is_told_once(host_ms: dict[int, int], exposed_ms: int, kinds: list[str]) -> None:
    """Communication is exposed for so long in each long iteration, and for 5 ms in the others."""
    rank = Job([[105, 115]]).rank(0)
    host = [MS * host_ms.get(number, 0) for number in OF_20]
    of_host = StageTime(stage="host", time_ns=sum(host), iterations_ns=host)
    rest = StageTime(stage="forward", time_ns=sum(one.duration_ns for one in rank.iterations) - sum(host))
    exposed = [MS * (exposed_ms if number in (105, 115) else 5 if exposed_ms == 5 else 0) for number in OF_20]
    iterations = [
        msgspec.structs.replace(one, time_ns=TimeBreakdown(span=one.duration_ns, exposed_communication=time))
        for one, time in zip(rank.iterations, exposed, strict=True)
    ]
    assert rank.stages is not None
    stages = msgspec.structs.replace(rank.stages, stages=[of_host, rest])
    total = TimeBreakdown(span=280 * MS, exposed_communication=sum(exposed))
    report = Report(
        totals=[KindTotal(kind="cpu", time_basis="host", ranks=1, time_ns=total)],
        ranks=[msgspec.structs.replace(rank, iterations=iterations, stages=stages, time_ns=total)],
    )
    assert [one.kind for one in find_findings(report)] == kinds


@pytest.mark.parametrize("verdict", ["nobody", "moving_imbalance"])
def test_the_answer_says_it_once(verdict: str) -> None:
    stragglers = Stragglers(verdict=verdict, gain=0.02 if verdict == "moving_imbalance" else 0)  # type: ignore[arg-type]
    answer = give_answer(Job([[105, 115], [105, 115]]).report(stragglers))
    brief = "2 of 20 iterations (every 10th) take 5 times as long as the others (train.py:41 evaluate)"
    assert answer.sentence.count(brief) == 1
    assert not [one for one in answer.evidence if "times as long" in one]
