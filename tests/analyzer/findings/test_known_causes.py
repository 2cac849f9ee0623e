"""Known causes as findings: what all ranks lose, told once, and in place of advice that would be another."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from fleetprof_analyzer.findings.known_cause_kinds import KINDS, KnownCauseKind
from fleetprof_analyzer.findings.known_causes import ProvenCause
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.rank.causes.registry import CAUSES
from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName
from fleetprof_api.report.report import Iteration, KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import CoreUse, Silence, Stages, StageTime
from fleetprof_api.report.stragglers import Cause, Straggler, Stragglers, Undecided

ROOT = Path(__file__).parents[3]
MS = 1_000_000
WHOLE = 1000 * MS
INNOCENT = PlaceInCode(file="/home/me/train.py", line=7, function="tokenize")


def rank(number: int, *causes: KnownCause, silent_permille: int = 0) -> Rank:
    """CPU-only, ten iterations of 100 ms."""
    silent = silent_permille * MS
    stages = [StageTime(stage="host", time_ns=silent), StageTime(stage="forward", time_ns=WHOLE - silent)]
    silence = Silence(after="aten::add_", before="aten::randn", time_ns=silent, count=9, place=INNOCENT)
    return Rank(
        rank=number, source=str(number), kind="cpu", time_basis="host",
        time_ns=TimeBreakdown(span=WHOLE, compute=WHOLE - silent, idle=silent),
        iterations=[Iteration(index=at, start_ns=at, duration_ns=100 * MS) for at in range(10)],
        stages=Stages(stages=stages, silences=[silence] if silent else []), causes=list(causes),
    )  # fmt: skip


def collector(permille: int) -> KnownCause:
    """That takes so much of a rank's iterations."""
    return KnownCause(cause="garbage_collection", time_ns=permille * MS, count=12, iterations=9, longest_ns=61 * MS)


def report_of(ranks: Sequence[Rank], stragglers: Stragglers | None = None) -> Report:
    """With findings in words."""
    total = KindTotal(kind="cpu", time_basis="host", ranks=len(ranks), time_ns=TimeBreakdown(span=WHOLE))
    report = Report(totals=[total], ranks=list(ranks), stragglers=stragglers)
    return Report(
        totals=[total],
        ranks=list(ranks),
        stragglers=stragglers,
        findings=find_findings(report),
    )


@pytest.mark.parametrize(("ranks", "found"), [
    ([rank(0, collector(580))], [("garbage_collection", 580)]),
    ([rank(0, collector(580)), rank(1, collector(300))], [("garbage_collection", 300)]),
    ([rank(0, collector(580)), rank(1)], []),  # of one of two: the straggler verdict's
    ([rank(0, collector(49))], []),
    ([rank(0, collector(300), silent_permille=500)], [("garbage_collection", 300)]),
    ([rank(0, collector(100), silent_permille=500)], [("python", 500), ("garbage_collection", 100)]),
])  # fmt: skip
def test_what_all_ranks_lose_is_told_in_place_of_what_it_explains(
    ranks: list[Rank], found: list[tuple[str, int]]
) -> None:
    assert [(one.kind, one.gain_permille) for one in report_of(ranks).findings] == found


@pytest.mark.parametrize(("cause", "count"), [("garbage_collection", 0), ("host", 1)])
def test_what_the_verdict_names_is_not_told_once_more(cause: Cause, count: int) -> None:
    late = Straggler(rank=1, lateness_ns=1, cause=cause, gain=0.4)
    stragglers = Stragglers(verdict="straggler", gain=0.4, ranks=[late])
    report = report_of([rank(0, collector(100)), rank(1, collector(580))], stragglers)
    assert [one.kind for one in report.findings].count("garbage_collection") == count


def undecided(candidate: int, gain: float = 0.7) -> Stragglers:
    return Stragglers(
        verdict="undecided",
        candidate=Undecided(
            rank=candidate, gain=gain, gain_low=-0.5, gain_high=1.9, iterations=10, iterations_needed=90
        ),
    )


@pytest.mark.parametrize(("permille", "verdict", "found"), [
    pytest.param((100, 580), undecided(1), [("garbage_collection", 100, []), ("garbage_collection", 480, [1])],
                 id="all have it, and the candidate more"),
    pytest.param((0, 580), undecided(1), [("garbage_collection", 580, [1])], id="the candidate alone"),
    pytest.param((0, 580), undecided(1, gain=0.3), [("garbage_collection", 300, [1])], id="no more than it may cost"),
    pytest.param((0, 580), undecided(0), [], id="not the candidate"),
    pytest.param((0, 49), undecided(1), [], id="too little"),
    pytest.param((580, 580), undecided(1), [("garbage_collection", 580, [])], id="the candidate has as much"),
    pytest.param((0, 580), Stragglers(verdict="nobody"), [], id="nobody is late"),
])  # fmt: skip
def test_what_is_proven_of_the_rank_that_may_be_late_is_told_of_it(
    permille: tuple[int, int], verdict: Stragglers, found: list[tuple[str, int, list[int]]]
) -> None:
    ranks = [rank(number, *([collector(share)] if share else [])) for number, share in enumerate(permille)]
    findings = [(one.kind, one.gain_permille, one.ranks) for one in report_of(ranks, verdict).findings]
    assert sorted(findings) == sorted(found)


@pytest.mark.parametrize(("permille", "gain", "says", "begins"), [
    pytest.param((0, 580), 0.7, "Potential saving on rank 1: 58.0 % of each iteration. ", "call gc.freeze()",
                 id="the candidate's own"),
    pytest.param((580, 580), 0.7, "Potential saving: 58.0 % of each iteration. ", "capture ", id="worth less"),
    pytest.param((580, 580), 0.1, "Potential saving: 58.0 % of each iteration. ", "call gc.freeze()", id="worth more"),
])  # fmt: skip
def test_a_proven_cause_of_the_candidate_or_worth_more_is_tried_before_a_longer_capture(
    permille: tuple[int, int], gain: float, says: str, begins: str
) -> None:
    ranks = [rank(number, *([collector(share)] if share else [])) for number, share in enumerate(permille)]
    answer = give_answer(report_of(ranks, undecided(1, gain)))
    assert says in answer.sentence
    assert answer.next_step.startswith(begins)


def test_the_answer_names_the_cause_and_blames_no_line_beside_it() -> None:
    answer = give_answer(report_of([rank(0, collector(580), silent_permille=600)]))
    assert answer.sentence == (
        "Potential saving: 58.0 % of each iteration. The garbage collector of Python stops the training thread: 12 "
        "runs of up to 61 ms in 9 of 10 iterations. Of an iteration, 60.0 % is the host between stages and 40.0 % is"
        " forward."
    )
    assert not answer.evidence
    assert answer.next_step.startswith("call gc.freeze()")


@pytest.mark.parametrize(("waited", "begins"), [(600, "call gc.freeze()"), (700, "run fewer ranks")])
def test_a_cause_that_is_worth_half_of_the_most_is_what_the_answer_is_about(waited: int, begins: str) -> None:
    cores = CoreUse(sampled_ns=WHOLE, waited_ns=waited * MS)
    answer = give_answer(report_of([msgspec.structs.replace(rank(0, collector(320)), cores=cores)]))
    assert answer.next_step.startswith(begins)
    assert answer.sentence.startswith("Potential saving: 32.0 % of each iteration") == (waited == 600)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
def test_each_cause_has_its_row_in_the_docs_and_a_program(kind: KnownCauseKind) -> None:
    options = ", ".join(f"`{option}`" for option in kind.options)
    row = f"| `{kind.name}` | {kind.evidence} | {kind.least_permille / 10:g} % | {options} |"
    assert row in (ROOT / "docs/measures.md").read_text()
    assert all(option in kind.advice for option in kind.options)
    assert (ROOT / f"bench/real/programs/{kind.program}.py").exists()


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
def test_each_cause_is_told_from_its_least_share_on_and_not_below(kind: KnownCauseKind) -> None:
    def find_told(time: int, permille: int | None = None) -> list[tuple[str, int]]:
        known = KnownCause(cause=kind.name, time_ns=time * MS, gain_permille=permille, iterations=3)
        return [(one.kind, one.gain_permille) for one in report_of([rank(0, known)]).findings]

    least = kind.least_permille
    assert find_told(least) == [(kind.name, least)]
    assert find_told(least - 1) == []
    assert find_told(900, least) == [(kind.name, least)], "the share of iterations that are not recorded counts"
    assert find_told(900, least - 1) == []


def test_each_cause_of_the_report_is_measured_and_told() -> None:
    assert {*get_args(KnownCauseName)} == {*CAUSES} == {kind.name for kind in KINDS}


def test_the_docs_list_no_other_cause() -> None:
    section = (ROOT / "docs/measures.md").read_text().split("### Known causes\n")[1].split("\n#")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) - {"cause"} == {kind.name for kind in KINDS}


def known_cause(name: KnownCauseName) -> KnownCause:
    """In three iterations."""
    return KnownCause(cause=name, time_ns=100 * MS, iterations=3)


SENTENCES: dict[KnownCauseName, tuple[KnownCause, str]] = {
    "garbage_collection": (
        collector(580),
        "the garbage collector of Python stops the training thread: 12 runs of up to 61 ms in 9 of 10 iterations",
    ),
    "repeated_reduction": (
        KnownCause(cause="repeated_reduction", time_ns=MS, count=8, iterations=10),
        "gradients are reduced over the ranks in each of the 8 backward passes of an optimizer's step, where the last "
        "one would do",
    ),
    "small_collectives": (
        KnownCause(cause="small_collectives", time_ns=MS, count=60, iterations=10, message_bytes=4),
        "the training thread calls 60 collectives of 4 B on average in each iteration, outside of the backward pass",
    ),
    "unused_parameters": (
        known_cause("unused_parameters"),
        "DistributedDataParallel searches the graph for parameters that the step does not use, in 3 of 10 iterations",
    ),
    "few_cores": (
        KnownCause(cause="few_cores", time_ns=MS, count=1500, of=8000, iterations=10),
        "the process and its workers may use 1.5 of the machine's 8 cores, and the training thread waits for one",
    ),
    "compilation": (known_cause("compilation"), "torch.compile compiles again, in 3 of 10 iterations"),
    "workers_started": (
        known_cause("workers_started"), "the DataLoader starts its worker processes again, in 3 of 10 iterations",
    ),
    "checkpoint": (known_cause("checkpoint"), "the training thread writes a checkpoint, in 3 of 10 iterations"),
    "evaluation": (
        known_cause("evaluation"),
        "the model runs without a backward pass (evaluation, generation), in 3 of 10 iterations",
    ),
    "logging": (known_cause("logging"), "the training thread logs, in 3 of 10 iterations"),
}  # fmt: skip


def test_runs_before_the_iterations_are_said_to_be_there() -> None:
    known = KnownCause(cause="garbage_collection", time_ns=MS, count=5, longest_ns=300 * MS)
    assert ProvenCause(known, 10).say()[0] == (
        "the garbage collector of Python stops the training thread: 5 runs of up to 300 ms before these iterations"
    )


@pytest.mark.parametrize("name", get_args(KnownCauseName))
def test_what_is_said(name: KnownCauseName) -> None:
    known, message = SENTENCES[name]
    assert ProvenCause(known, 10).say()[0] == message
