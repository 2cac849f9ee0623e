"""More work told by the sizes of tensors: named with both, excluded where they are equal, whatever the times say."""

import io
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.capture.folder import summarise_file
from fleetprof_analyzer.job.stragglers.causes.tensor_sizes import compare_sizes
from fleetprof_analyzer.job.stragglers.causes.unequal_work import compare_operators
from fleetprof_analyzer.job.stragglers.lateness.own_time import tabulate
from fleetprof_analyzer.job.stragglers.replay.matching import match
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.replay.roles import find_roles
from fleetprof_analyzer.rank.communication.operations import Signature
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.words.straggler_list import evidence
from fleetprof_api.report.stragglers import Stragglers
from harness.traces.planted.batches import RankPace, plant_batches
from harness.traces.planted.faults import operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, traces_of
from harness.traces.straggler_sections import stragglers_of, stragglers_of_summaries

LATE_RANK = 2


def judged(late: RankPace, *, shapes: bool = True) -> Stragglers:
    """The verdict over four ranks of which one is so; lengths differ on all of them as on it."""
    summaries = []
    paces = [late if rank == LATE_RANK else RankPace(spread=late.spread) for rank in range(4)]
    for rank, text in enumerate(plant_batches(paces, shapes=shapes)):
        summary = summarise_file(
            lambda text=text: io.BytesIO(text.encode()),  # type: ignore[misc]
            f"rank{rank}.json", samples=None, assigned=None, terms=RecordingTerms(), problems=Problems(),
        )  # fmt: skip
        assert summary.problems == []
        summaries.append((summary.rank_number, summary.operations, summary.operations_bytes))
    found = stragglers_of_summaries(summaries)
    assert found is not None
    return found


SLOW_FOR_THE_BATCH = RankPace(
    slow_batch=4
)  # such as numbers that are not normal: its optimizer is as fast as elsewhere


@pytest.mark.parametrize(("late", "shapes", "cause"), [
    (RankPace(tokens=256),                             True,  "unequal_work"),
    (RankPace(tokens=256),                             False, "unequal_work"),  # by its times
    (SLOW_FOR_THE_BATCH,                           True,  "host"),
    (SLOW_FOR_THE_BATCH,                           False, "unequal_work"),  # nothing else can be told
    (RankPace(slow_batch=4, slow_step=4),              True,  "host"),
    (RankPace(tokens=192, slow_step=3),                True,  "unequal_work"),
    (RankPace(tokens=192, slow_step=3),                False, "host"),
    (RankPace(tokens=70, slow_batch=4),                True,  "host"),  # a little more work does not explain it
    (RankPace(tokens=128, spread=0.2),                 True,  "unequal_work"),  # lengths differ from batch to batch
    (RankPace(tokens=128, spread=0.2),                 False, "unequal_work"),
    (RankPace(slow_batch=2, slow_step=2, spread=0.2),  True,  "host"),
    (RankPace(slow_batch=2, slow_step=2, spread=0.2),  False, "host"),
])  # fmt: skip
def test_the_cause(late: RankPace, shapes: bool, cause: str) -> None:
    found = judged(late, shapes=shapes)
    assert [(one.rank, one.cause) for one in found.ranks] == [(LATE_RANK, cause)]


def test_larger_tensors_are_named_with_both_sizes_and_the_dimensions() -> None:
    (late,) = judged(RankPace(tokens=256)).ranks
    shown = {one.measure: one for one in late.evidence}
    addmm = shown["operator aten::addmm on [[512], [256, 512], [512, 512], [], []]"]
    assert (addmm.value, addmm.usual) == (256 * 512, 64 * 512)
    assert evidence(addmm) == (
        "operator aten::addmm on [[512], [256, 512], [512, 512], [], []]: 131,072 elements of one input; "
        "32,768 on the other ranks"
    )
    assert not any("at their medians" in measure for measure in shown)


def test_equal_tensors_are_said_to_be_equal() -> None:
    (late,) = judged(SLOW_FOR_THE_BATCH).ranks
    assert ("size of the tensors that its operators were given", 100, 100) in [
        (one.measure, one.value, one.usual) for one in late.evidence
    ]


def uses(
    elements: int = 100, *, us: int = 100, name: str = "aten::mm", weights: int = 10**6, of_parameters: bool = False
) -> OperatorUse:
    """An operator with an input that depends on the batch and one that does not."""
    return OperatorUse(name, of_parameters, 10, 0, us * 1000, (elements, weights), f"[[{elements}], [{weights}]]")


UNSAID = OperatorUse("aten::mm", False, 10, 0, 100_000)
UNSAID_MOST = OperatorUse("aten::gelu", False, 10, 0, 900_000)


@pytest.mark.parametrize(("mine", "peer", "more_us"), [
    (uses(400, us=400), uses(), 10 * 300),  # however large its weights are
    (uses(400, us=100), uses(), 0),         # larger, and not longer
    (uses(120, us=400), uses(), 10 * 44),   # at most by the square of its size
    (uses(100, us=400), uses(), 0),
    (uses(50, us=400),  uses(), 0),
])  # fmt: skip
def test_what_sizes_explain(mine: OperatorUse, peer: OperatorUse, more_us: int) -> None:
    sizes = compare_sizes([mine], [[peer], [peer]])
    assert sizes is not None
    assert round(sizes.more_ns) == more_us * 1000
    assert bool(sizes.larger) == (mine.elements[0] > 102)


@pytest.mark.parametrize(("mine", "peers"), [
    ([UNSAID], [[uses()]]),
    ([uses()], [[UNSAID]]),
    ([uses()], [[uses()], [UNSAID]]),
    ([uses()], []),
    ([uses()], [[]]),
    ([], [[uses()]]),
    ([uses(of_parameters=True)], [[uses(of_parameters=True)]]),
    ([uses(), UNSAID_MOST], [[uses(), UNSAID_MOST]]),
])  # fmt: skip
def test_sizes_that_are_not_known_tell_nothing(mine: list[OperatorUse], peers: list[list[OperatorUse]]) -> None:
    assert compare_sizes(mine, peers) is None


SHAPE = JobShape(dp=8, layers=3)


def without_threads(kernel: Signature) -> Signature:
    return msgspec.structs.replace(kernel, timed_threads=0.0, squared_threads=0.0, threads_by_ns=0.0)


def judged_on_devices(fault: PlantedFault, late: OperatorUse | None, *, threads: bool = True) -> Stragglers:
    """The verdict over eight GPUs, of which rank 3 says `late` of its operators and the others what is usual."""
    job = PlantedJob(SHAPE, fault, 11)
    operations = [
        replace(
            one,
            operators=[] if late is None else [late if one.rank == 3 else uses()],
            signatures=one.signatures if threads else [without_threads(kernel) for kernel in one.signatures],
        )
        for one in operations_of(job, traces_of(job, Clarity(), 11))
    ]
    found = stragglers_of(operations)
    assert found is not None
    return found


def more_work(factor: float) -> PlantedFault:
    lengths = np.ones((8, 8, 1))
    lengths[3] = factor
    return PlantedFault("more_work", lengths=lengths)


@pytest.mark.parametrize(("late", "threads", "cause"), [
    (None, True, "unequal_work"),
    (uses(130), True, "unequal_work"),
    (uses(130), False, "unequal_work"),  # kernels that launch as many threads whatever their work
    (uses(100), True, "slow_gpu"),       # other kernels, for the same tensors
    (uses(103), False, "slow_gpu"),
    (None, False, "slow_gpu"),
])  # fmt: skip
def test_on_a_device(late: OperatorUse | None, threads: bool, cause: str) -> None:
    found = judged_on_devices(more_work(1.3), late, threads=threads)
    assert [(one.rank, one.cause) for one in found.ranks] == [(3, cause)]
    named = [one for one in found.ranks[0].evidence if one.measure == "operator aten::mm on [[130], [1000000]]"]
    assert [(one.value, one.usual) for one in named] == ([(130, 100)] if late == uses(130) else [])


def test_a_slow_device_stays_one_where_some_tensors_are_a_little_larger() -> None:
    device = np.ones((SHAPE.ranks, SHAPE.iterations))
    device[3] = 1.4
    found = judged_on_devices(PlantedFault("slow_gpu", 3, device=device), uses(106))
    assert [(one.rank, one.cause) for one in found.ranks] == [(3, "slow_gpu")]


def test_operators_of_one_iteration_more_are_no_more_work() -> None:
    job = PlantedJob(SHAPE, PlantedFault(), 11)
    operations = [replace(one, operators=[counted(80)]) for one in operations_of(job, traces_of(job, Clarity(), 11))]
    longer = [*operations[3].iterations, operations[3].iterations[-1] + 1]
    operations[3] = replace(operations[3], iterations=longer, operators=[counted(90)])
    replay = Replay(match(operations))
    table = tabulate(replay, find_roles(replay.matched, replay.strays))
    assert [one.count for (one,) in table.operators] == [80] * SHAPE.ranks
    assert compare_operators(table, 3) is not None


def counted(calls: int) -> OperatorUse:
    return OperatorUse("aten::mm", False, calls, calls * 100_000, 100_000)
