"""Each sentence about lost time is said from its guard's figure on, and below that what the guard says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import fleetprof_analyzer
import pytest
from fleetprof_analyzer.findings import exposed_communication as communication
from fleetprof_analyzer.findings.allocation import Allocation
from fleetprof_analyzer.findings.cpu_contention import FULL_HOSTS, UNEVEN_ITERATIONS, WAITS_FOR_CORES
from fleetprof_analyzer.findings.data_loading import HOST_LOADING, DataLoading
from fleetprof_analyzer.findings.exposed_copies import EXPOSED_COPIES
from fleetprof_analyzer.findings.finding import UNEVEN
from fleetprof_analyzer.findings.growing_memory import GROWING_MEMORY
from fleetprof_analyzer.findings.held_up import HELD_UP
from fleetprof_analyzer.findings.idle_device import MOST_OF_A_PLACE, PART_OF_A_PLACE
from fleetprof_analyzer.findings.launch_bound import LaunchBound
from fleetprof_analyzer.findings.long_iterations import LONG_ITERATIONS
from fleetprof_analyzer.findings.optimizer import ZERO_GRAD, Optimizer
from fleetprof_analyzer.findings.python import HOST_SILENCE, SILENCE_BETWEEN, PythonBetweenOperators
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.findings.synchronization import Synchronization
from fleetprof_analyzer.findings.tiny_launches import TINY_LAUNCHES
from fleetprof_analyzer.findings.waiting import Waiting
from fleetprof_analyzer.job.device_waits import WAITS_ON_DEVICE, name_device_waits
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.views.answer import guards
from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_analyzer.views.guard_list import GUARDS
from fleetprof_analyzer.words.findings import say_finding
from fleetprof_api.report.findings import PartOfTime
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.report.rank_tables import KnownCause, MemoryGrowth
from fleetprof_api.report.report import Iteration, KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import (
    CommunicationStatistics,
    CoreUse,
    IdlePlace,
    LongIterations,
    Silence,
    StageName,
    Stages,
    StageTime,
)
from fleetprof_api.report.stragglers import PipelineBubbles, Straggler, Stragglers
from msgspec.structs import replace

ANALYZER = Path(fleetprof_analyzer.__file__).parent
SPAN = 1_000_000
Build = Callable[[int], Report]


def stages(silence: int = 0, **permille: int) -> Stages:
    silences = [Silence(after="aten::item", before="aten::to", time_ns=1000 * silence, count=1)] if silence else []
    names: dict[str, StageName] = {name: name for name in get_args(StageName)}
    times = [StageTime(stage=names[name], time_ns=1000 * value) for name, value in permille.items()]
    return Stages(stages=times, iterations=1, silences=silences)


def job(
    kind: Literal["gpu", "cpu"] = "gpu", *, idle: dict[str, int] | None = None,
    each: list[dict[str, int]] | None = None, rank: dict[str, Any] | None = None, ranks: int = 1,
    report: dict[str, Any] | None = None, **time: int,
) -> Report:  # fmt: skip
    """A report whose times are permille of a span; `each`: the idle causes of each rank."""
    time_ns = TimeBreakdown(span=SPAN, **{name.rstrip("_"): 1000 * value for name, value in time.items()})
    causes = each or [idle or {}] * ranks
    of_ranks = [
        Rank(rank=number, source=str(number), kind=kind, time_basis="device" if kind == "gpu" else "host",
             time_ns=time_ns, idle_ns=_causes(one) if kind == "gpu" else None, **(rank or {}))
        for number, one in enumerate(causes)
    ]  # fmt: skip
    total = KindTotal(kind=kind, time_basis=of_ranks[0].time_basis, ranks=len(of_ranks), time_ns=time_ns,
                      idle_ns=_causes(idle or {}) if kind == "gpu" else None)  # fmt: skip
    return Report(totals=[total], ranks=of_ranks, **(report or {}))


def _causes(permille: dict[str, int]) -> IdleCauses:
    return IdleCauses(**{name: 1000 * value for name, value in permille.items()})


def sent(exposed: int = 300, *, rows: list[CommunicationStatistics] | None = None, **found: Any) -> Report:
    """A job that sends, with a part of its communication exposed."""
    verdict = Stragglers(verdict="nobody", **{"transfer_share": 0.8} | found)
    iterations = [Iteration(index=at, start_ns=at, duration_ns=100_000) for at in range(10)]
    more = {"stragglers": verdict, "communication": [reduced()] if rows is None else rows}
    return job(exposed_communication=exposed, rank={"iterations": iterations}, report=more)


def reduced(kind: str = "all_reduce", *, total: int = 100, size: int | None = 4096, count: int = 100) -> Any:
    return CommunicationStatistics(
        kind=kind, count=count, total_ns=total, min_ns=1, overlapped_ns=0, ranks=1, message_bytes=size
    )


def idle_of(cause: str) -> Build:
    return lambda permille: job(idle={cause: permille})


def waiting_python(permille: int, cause: int = 400) -> Report:
    place = IdlePlace(kind="python", time_ns=cause * permille, count=1, after="aten::item", before="aten::mm")
    return job(idle={"host_python": cause}, rank={"idle_places": [place]}, idle_=0)


def long_ones(permille: int) -> Report:
    """One of ten iterations takes longer, by so many permille of all."""
    usual = 100_000
    longer = permille * 10 * usual // (1000 - permille) + 1
    lengths = [usual + (longer if at == 4 else 0) for at in range(10)]
    iterations = [Iteration(index=at, start_ns=0, duration_ns=each) for at, each in enumerate(lengths)]
    found = Stages(iterations=10, long_iterations=LongIterations(positions=[4], usual_ns=usual, stage="host"))
    return job("cpu", rank={"iterations": iterations, "stages": found})


def full(busy: int = 1000, longer: int = 300) -> Report:
    """Iterations of which all but the first take longer: by so many permille of the whole."""
    rest = 1000 * 1000 // (1000 - longer)
    iterations = [Iteration(index=at, start_ns=0, duration_ns=each) for at, each in enumerate([1000, *[rest] * 40])]
    return job("cpu", ranks=2, rank={"iterations": iterations, "cores": CoreUse(host_busy_permille=busy)})


def tiny(permille: int) -> ModuleTree:
    """A module with a thousand launches, which take so much of the iteration."""
    times = ModuleTimes(device_ns=1000 * permille, launches=1000)
    node = ModuleNode(name="Net.embed", depth=1, forward=times)
    return ModuleTree(iteration_ns=SPAN, whole=ModuleTimes(device_ns=SPAN), nodes=[node])


def held_up(permille: int, *others: int) -> Report:
    late = Straggler(rank=0, lateness_ns=9, cause="host", gain=permille / 1000, gain_alone=permille / 1000, peers=1)
    verdict = Stragglers(verdict="straggler", ranks=[late], gain=permille / 1000, reason="the others wait for rank 0")
    return job(idle={"host_python": others[0]} if others else {}, ranks=2, report={"stragglers": verdict})


def late_on_device(permille: int) -> Report:
    """Rank 0 is late by 100 of each iteration's 1,000, of which so much is launched and does not begin."""
    iterations = [Iteration(index=at, start_ns=at, duration_ns=100_000) for at in range(10)]
    report = job(each=[{"waiting": permille // 10, "host": 10}, {"host": 10}], rank={"iterations": iterations})
    late = Straggler(rank=0, lateness_ns=10_000, cause="host", gain=0.1, gain_alone=0.1, peers=1)
    verdict = Stragglers(verdict="straggler", ranks=[late], gain=0.1, reason="the others wait for rank 0")
    return replace(report, stragglers=name_device_waits(verdict, report.ranks))


def proven(permille: int) -> Report:
    """Half of the time waits for other work; checkpoints take so many permille of that."""
    iterations = [Iteration(index=at, start_ns=at, duration_ns=SPAN // 10) for at in range(10)]
    causes = [KnownCause(cause="checkpoint", time_ns=500 * permille, count=1, iterations=1)]
    return job(idle={"waiting": 500}, idle_=500, rank={"iterations": iterations, "causes": causes})


def growing(permille: int) -> Report:
    grown = MemoryGrowth(of="process", bytes_per_iteration=4 << 20, grown_steps=permille, steps=1000, first_bytes=1,
                         last_bytes=1 << 30)  # fmt: skip
    return job(rank={"memory_growth": grown})


class Case(NamedTuple):
    """`build` makes a report whose figure is so many permille of the whole; `words` are the guard's, `below` too."""

    build: Build
    words: str
    below: str = ""


CASES: dict[str, Case] = {
    **{
        facts.guard.place: Case(idle_of(cause), facts.guard.words)
        for cause, facts in (
            ("data_loading", DataLoading), ("synchronization", Synchronization), ("host_operators", LaunchBound),
            ("host_python", PythonBetweenOperators), ("optimizer", Optimizer), ("host_allocation", Allocation),
            ("waiting", Waiting),
        )
    },
    MOST_OF_A_PLACE.place: Case(
        waiting_python, "most of it between aten::item", "49 % of it between aten::item"
    ),
    PART_OF_A_PLACE.place: Case(waiting_python, "25 % of it between aten::item", "between operators"),
    ZERO_GRAD.place: Case(
        lambda permille: job(idle={"optimizer": 90}, rank={"stages": stages(zero_grad=permille, optimizer=1000)}),
        "the GPU waits for zero_grad() on the host", "fused=True",
    ),
    UNEVEN.place: Case(
        lambda permille: job(idle={"data_loading": 83}, each=[{"data_loading": v} for v in (100, 100, permille // 10)]),
        "most on rank 2",
    ),
    communication.EXPOSED.place: Case(lambda permille: sent(permille), "no computation hides the communication"),
    communication.SENDING.place: Case(
        lambda permille: sent(transfer_share=permille / 1000), "send fewer and larger messages",
        "the ranks wait for each other in their collectives",
    ),
    communication.SCHEDULE.place: Case(
        lambda permille: sent(pipeline=PipelineBubbles(share=0.3 * permille / 1000, stages=4)),
        "by the pipeline's schedule each device waits", "no computation hides",
    ),
    communication.SIZES.place: Case(
        lambda permille: sent(rows=[reduced(total=permille), reduced(total=1000 - permille, size=None)]),
        "a call on average", "what runs beside the longest",
    ),
    communication.LARGER_MESSAGES.place: Case(
        lambda permille: sent(rows=[reduced(count=permille // 100)]), "send fewer and larger messages",
        "what runs beside the longest",
    ),
    GROWING_MEMORY.place: Case(growing, "memory of the training process grows by 4.00 MiB an iteration"),
    EXPOSED_COPIES.place: Case(lambda permille: job(exposed_memory=permille), "nothing hides copies"),
    WAITS_ON_DEVICE.place: Case(
        late_on_device, "wait for its device, which does not begin work that is launched", "its host code"
    ),
    HELD_UP.place: Case(lambda permille: held_up(permille), "What to try for rank 0"),
    LONG_ITERATIONS.place: Case(long_ones, "1 of 10 iterations takes"),
    HOST_LOADING.place: Case(
        lambda permille: job("cpu", rank={"data_loading_ns": 1000 * permille}),
        "the training thread waits for the next batch",
    ),
    HOST_SILENCE.place: Case(
        lambda permille: job("cpu", rank={"stages": stages(host=permille, forward=1000 - permille)}),
        "the training thread runs no operator",
    ),
    SILENCE_BETWEEN.place: Case(
        lambda permille: job("cpu", rank={"stages": stages(permille * 4 // 10, host=400, forward=600)}),
        "no operator, most of it between aten::item and aten::to", "no operator",
    ),
    WAITS_FOR_CORES.place: Case(
        lambda permille: job("cpu", rank={"cores": CoreUse(sampled_ns=SPAN, waited_ns=1000 * permille)}),
        "the training thread waits for a core",
    ),
    FULL_HOSTS.place: Case(lambda permille: full(busy=permille), "all cores of the ranks' hosts are busy"),
    UNEVEN_ITERATIONS.place: Case(lambda permille: full(longer=permille + 3), "iterations differ in length"),
    guards.LARGEST_PART.place: Case(
        lambda permille: job(idle={"host_python": permille}, compute=1000 - permille, idle_=permille),
        "of the GPU's time is idle", "of the GPU's time is computing",
    ),
    guards.NOT_RECORDED.place: Case(
        lambda permille: job(unrecorded=permille, compute=500, exposed_memory=400), "of the GPU's time was not recorded"
    ),
    guards.MOST_OF_IDLE.place: Case(
        lambda permille: job(idle={"host": permille, "waiting": (1000 - permille) // 2,
                                   "optimizer": (1000 - permille) // 2}, idle_=1000),
        "idle, most of it", "idle, the largest part",
    ),
    guards.MOSTLY_SILENT.place: Case(
        lambda permille: job(idle={"host": 600}, rank={"stages": stages(permille * 6 // 10, host=600)}, idle_=600),
        "mostly between aten::item and aten::to", "has not launched the next work yet.",
    ),
    guards.MOST_OF_COMMUNICATION.place: Case(
        lambda permille: sent(rows=[reduced(total=permille), *(
            reduced(kind, total=(1000 - permille) // 2) for kind in ("all_gather", "broadcast"))]),
        "hides, most of it all-reduce", "hides, the largest part of it all-reduce",
    ),
    guards.COLLECTIVES.place: Case(
        lambda permille: job("cpu", exposed_communication=permille), "time goes to collectives", "is operators"
    ),
    guards.STAGE.place: Case(
        lambda permille: job("cpu", rank={"stages": stages(backward=1000 - permille, forward=permille)}), "is forward"
    ),
    guards.SILENT_STAGE.place: Case(
        lambda permille: job("cpu", rank={"stages": stages(permille * 4 // 10, host=400, forward=600)}),
        "the host between stages (between aten::item and aten::to", "the host between stages.",
    ),
    guards.LONG_SILENCE.place: Case(
        lambda permille: job("cpu", rank={"stages": stages(permille, host=200, forward=800)}),
        "The host runs nothing for",
    ),
    TINY_LAUNCHES.place: Case(
        lambda permille: job(report={"module_tree": tiny(permille)}), "Net.embed runs in 1,000 launches of "
    ),
    guards.PROVEN_CAUSE.place: Case(proven, "Potential saving: 25.0 % of each iteration"),
    guards.MORE_ELSEWHERE.place: Case(lambda permille: held_up(100, permille // 10), "Potential saving elsewhere"),
}  # fmt: skip


def tell(report: Report) -> str:
    """All that the report says of lost time."""
    findings = find_findings(report)
    answer = give_answer(replace(report, findings=findings))
    sentences = [part for one in findings for part in (one.message, say_finding(one), one.advice)]
    tried = [f"What to try for rank {rank}" for one in findings if one.part == "ranks" for rank in one.ranks]
    return "\n".join([answer.sentence, *answer.evidence, *sentences, *tried])


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.place)
def test_it_is_said_from_its_least_share_on_and_not_below(guard: SentenceGuard) -> None:
    assert guard.place in CASES, f"no case against the guard of {guard.place!r}"
    build, words, below = CASES[guard.place]
    step = 10 if guard.least_permille >= 1000 or guard is WAITS_ON_DEVICE else 1  # of coarse figures
    least = guard.least_permille + (step if guard.more else 0)
    assert words in tell(build(least)), guard.place
    less = tell(build(least - step))
    assert words not in less, guard.place
    assert below in less, guard.place


def test_a_guard_stands_once_is_listed_and_is_asked_somewhere() -> None:
    places = [guard.place for guard in GUARDS]
    assert sorted(set(places)) == sorted(places)
    assert set(CASES) == set(places)
    code = "\n".join(path.read_text() for path in ANALYZER.rglob("*.py"))
    of_causes = 'place=f"finding {self.name}"'
    made = re.findall(r'place=(f?"[^"]*"),\s+figure=', code)
    assert sorted(made) == sorted([of_causes.removeprefix("place="), *(f'"{place}"' for place in places)])
    names = re.findall(r"^(\w+): Final = SentenceGuard\(", code, re.MULTILINE)
    assert [name for name in names if f"{name}.allows(" not in code] == []


def test_the_guard_of_every_finding_names_its_part_of_the_time() -> None:
    """So that its headline speaks of its part, and nobody counts it as another: `MeasuredFinding.guard` is required."""
    of_findings = [guard for guard in GUARDS if guard.place.startswith("finding ") and ":" not in guard.place]
    assert [guard.place for guard in of_findings if not guard.part] == []


@pytest.mark.parametrize("part", get_args(PartOfTime))
def test_the_headline_speaks_of_the_findings_part_or_of_the_largest(part: PartOfTime) -> None:
    """A finding whose part is none of the device's time falls into no default."""
    report = job(idle={"host": 200}, exposed_memory=300, exposed_communication=250, compute=250, idle_=200)
    (finding,) = find_findings(job(exposed_memory=300))
    sentence = give_answer(replace(report, findings=[replace(finding, part=part)])).sentence
    words = {"idle": "is idle", "host": "is idle", "communication": "is communication"}.get(part, "is copies")
    assert words in sentence
