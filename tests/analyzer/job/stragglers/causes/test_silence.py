"""Silences of a late rank's main thread: silences of all ranks in, evidence and line out."""

import msgspec
import pytest
from fleetprof_analyzer.job.stragglers.causes.silence import add_silences
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank, TimeBreakdown
from fleetprof_api.report.report_tables import Silence, Stages
from fleetprof_api.report.stragglers import Cause, Evidence, Straggler, Stragglers

MS = 1_000_000
ITERATIONS = 10
HERE, THERE = PlaceInCode(file="train.py", line=12), PlaceInCode(file="loop.py", line=3)
STEP, BATCH = ("zero_grad", "aten::randn"), ("", "aten::to")


def rank(number: int, silent_ms: dict[tuple[str, str], int], loading: PlaceInCode | None = None) -> Rank:
    """One that is silent for so long in each iteration, at HERE."""
    silences = [
        Silence(after=after, before=before, time_ns=ITERATIONS * ms * MS, count=ITERATIONS, place=HERE)
        for (after, before), ms in silent_ms.items()
    ]
    stages = Stages(iterations=ITERATIONS, silences=silences, loading_place=loading)
    return Rank(rank=number, source="", kind="cpu", time_basis="host", time_ns=TimeBreakdown(), stages=stages)


def late(cause: Cause = "host", place: PlaceInCode | None = None) -> Straggler:
    return Straggler(
        rank=1, lateness_ns=40 * MS, cause=cause, evidence=[], gain=0.3, gain_alone=0.3, peers=2, place=place
    )


def added(one: Straggler, ranks: list[Rank]) -> Straggler:
    return add_silences(Stragglers(verdict="straggler", ranks=[one]), ranks).ranks[0]


OTHERS = [rank(0, {STEP: 2}), rank(2, {STEP: 2})]


@pytest.mark.parametrize(("cause", "silent_ms", "found"), [
    ("host", {STEP: 42}, (STEP, 42, 2)),
    ("mixed", {STEP: 3, BATCH: 30}, (BATCH, 30, 0)),  # the others are not silent there
    ("host", {STEP: 11}, None),  # less than a quarter of what the others wait
    ("host", {}, None),
    ("slow_gpu", {STEP: 42}, None),
])  # fmt: skip
def test_the_silence_of_a_late_rank(
    cause: Cause, silent_ms: dict[tuple[str, str], int], found: tuple[tuple[str, str], int, int] | None
) -> None:
    changed = added(late(cause), [*OTHERS, rank(1, silent_ms)])
    if found is None:
        assert changed == late(cause)
        return
    (after, before), own_ms, usual_ms = found
    words = f"its main thread runs nothing between {after or 'the start'} and {before}"
    assert changed.evidence == [
        Evidence(measure=words, value=own_ms * MS, usual=usual_ms * MS, unit="ns per iteration")
    ]
    assert changed.place == HERE


def test_a_line_that_samples_told_stays() -> None:
    assert added(late(place=THERE), [*OTHERS, rank(1, {STEP: 42})]).place == THERE


def test_a_slow_loader_has_the_line_of_its_stage() -> None:
    changed = added(late("data_loading"), [*OTHERS, rank(1, {STEP: 42}, loading=THERE)])
    assert changed == msgspec.structs.replace(late("data_loading"), place=THERE)


def test_without_stages_or_others_nothing_is_added() -> None:
    alone = rank(1, {STEP: 42})
    assert added(late(), [alone]) == late()
    assert added(late(), [*OTHERS, msgspec.structs.replace(alone, stages=None)]) == late()
