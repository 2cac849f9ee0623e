"""Every verdict with every cause that it can have, and the sentence that a report begins with."""

from typing import get_args

import msgspec
import pytest
from fleetprof_analyzer.job.stragglers.judgement.reasons import Nobody, Obstacle, SlowLinks, TooFewIterations
from fleetprof_analyzer.views.answer.lateness import say_lateness
from fleetprof_analyzer.words.verdict_reasons import say_reason
from fleetprof_api.report.report_tables import CoreUse
from fleetprof_api.report.stragglers import Cause, LateHost, Straggler, Stragglers
from harness.reference.written_reports import HERE, MS, job

LATE: dict[Cause, str] = {
    "data_loading": "its data loading (train.py:41 read_batch)",
    "host": "its host code (train.py:41 read_batch)",
    "device_wait": "its device, which does not begin work that is launched",
    "garbage_collection": "its garbage collector",
    "cpu_contention": "its turn on a CPU core that others use too",
    "unequal_work": "the larger share of work that it was given",
    "slow_gpu": "its GPU, which is slower than the others",
    "throttling": "its GPU, whose clock drops",
    "network": "its network link",
    "mixed": "it, for several reasons",
}
STAGES: dict[Cause, tuple[str, str]] = {
    "stage_imbalance": ("it", "with even stages"),
    "data_loading": ("its data loading", "with it as fast as the others"),
    "host": ("its host code", "with it as fast as the others"),
}
MOVING: dict[Cause, str] = {
    "unequal_work": "because their shares of the work differ from iteration to iteration",
    "data_loading": "because now one rank's batch is late and now another's",
    "garbage_collection": "because each collects garbage at another time",
    "host": "because their hosts pause at different times",
}
OTHERS = [
    (Stragglers(verdict="slow_link", gain=0.2, reason=say_reason(SlowLinks(3, [0, 1], 2.0, [1]))),
     "A slow link holds the job up: transfers of 3 groups are slow, and all of these groups contain rank 1. "
     "Potential saving: 20.0 % of each iteration, which would take 360 ms on average instead of 450 ms."),
    (Stragglers(verdict="nobody", smallest_gain=0.05, reason=say_reason(Nobody([], floor=0.05))),
     "No rank is late by more than 5.0 % of an iteration."),
    (Stragglers(verdict="nobody", reason=say_reason(Nobody([]))),
     "No rank stands out; how late one would have to be to show is not known."),
    (Stragglers(verdict="undecided", reason=say_reason(TooFewIterations(2, 3))),
     "Cannot tell yet whether a rank is late: 2 iterations are in all of the traces, and a verdict takes 3: capture "
     "more."),
    (Stragglers(reason=say_reason(Obstacle.SEVERAL_GROUPS)),
     "Cannot tell whether a rank is late: the traces do not say which process group an operation belongs to, and "
     "the ranks are in several."),
]  # fmt: skip


def late(cause: Cause, rank: int = 2) -> Straggler:
    """A rank that is late for this cause, at a line where the host is to blame."""
    place = HERE if cause in ("data_loading", "host") else None
    return Straggler(rank=rank, lateness_ns=1, cause=cause, gain=0.2, gain_alone=0.2, peers=3, place=place)


@pytest.mark.parametrize("cause", LATE)
def test_a_late_rank(cause: Cause) -> None:
    found = Stragglers(verdict="straggler", ranks=[late(cause)], gain=0.2)
    assert say_lateness(job(found)) == (
        f"Rank 2 holds the job up: the others wait for {LATE[cause]}. Potential saving: 20.0 % of each iteration, "
        "which would take 360 ms on average instead of 450 ms with it as fast as the others."
    )


def test_a_rank_that_is_late_in_a_rhythm() -> None:
    found = Stragglers(verdict="straggler", ranks=[msgspec.structs.replace(late("host"), every=3)], gain=0.2)
    assert (
        "the others wait for its host code (train.py:41 read_batch), in every 3rd iteration. Potential"
        in say_lateness(job(found))
    )


GPU_7 = LateHost(name="gpu-07", ranks=list(range(8, 16)), captured=8, others=3, cause="slow_gpu", gain_alone=0.2)
GPU_9 = LateHost(name="gpu-09", ranks=[24, 25, 27], captured=4, others=3, cause="data_loading", gain_alone=0.2)
HOST_WAITS: dict[Cause, str] = {
    "data_loading": "its data loading",
    "host": "the host code of its ranks, which takes longer there",
    "device_wait": "the devices of its ranks, which do not begin work that is launched",
    "garbage_collection": "the garbage collectors of its ranks",
    "cpu_contention": "its CPU cores, which its ranks get too late",
    "unequal_work": "the larger share of work that its ranks were given",
    "slow_gpu": "its GPUs, which are slower than the others",
    "throttling": "its GPUs, whose clocks drop",
    "network": "its network links",
    "mixed": "it, for several reasons",
}
THEN = "Potential saving: 20.0 % of each iteration, which would take 360 ms on average instead of 450 ms with"


@pytest.mark.parametrize("cause", HOST_WAITS)
def test_a_late_host(cause: Cause) -> None:
    ranks = [late(cause, rank) for rank in range(8, 16)]
    host = msgspec.structs.replace(GPU_7, cause=cause)
    assert say_lateness(job(Stragglers(verdict="straggler", ranks=ranks, hosts=[host], gain=0.2))) == (
        f"The node gpu-07 (ranks 8 to 15) holds the job up: the others wait for {HOST_WAITS[cause]}. "
        f"{THEN} it as fast as the others."
    )


@pytest.mark.parametrize(("hosts", "ranks", "sentence"), [
    ([msgspec.structs.replace(GPU_7, others=1)], [*range(8, 16)],
     "The node gpu-07 (ranks 8 to 15) holds the job up (the slower of two): the others wait for its "
     f"GPUs, which are slower than the others. {THEN} it as fast as the others."),
    ([GPU_7, GPU_9], [*range(8, 16), 24, 25, 27],
     "The nodes gpu-07 (ranks 8 to 15) and gpu-09 (ranks 24, 25 and 27) hold the job up: the others "
     f"wait for them, on gpu-07 for its GPUs, which are slower than the others. {THEN} them as fast as the others."),
    ([GPU_7], [*range(8, 16), 17],
     "The node gpu-07 (ranks 8 to 15) and rank 17 on gpu-2 hold the job up: the others wait for them, "
     f"on gpu-07 for its GPUs, which are slower than the others. {THEN} them as fast as the others."),
    ([], [17],
     "Rank 17 on gpu-2 holds the job up: the others wait for its GPU, which is slower than the others. "
     f"{THEN} it as fast as the others."),
    ([], [17, 18],
     "Ranks 17 and 18 on gpu-2 hold the job up: the others wait for them, most for rank 17's GPU, which "
     f"is slower than the others. {THEN} them as fast as the others."),
    ([], [17, 25],
     "Ranks 17 and 25 hold the job up: the others wait for them, most for rank 17's GPU, which "
     f"is slower than the others. {THEN} them as fast as the others."),
])  # fmt: skip
def test_hosts_and_ranks_that_are_late_together(hosts: list[LateHost], ranks: list[int], sentence: str) -> None:
    named = [msgspec.structs.replace(late("slow_gpu", rank), host=f"gpu-{rank // 8}") for rank in ranks]
    assert say_lateness(job(Stragglers(verdict="straggler", ranks=named, hosts=hosts, gain=0.2))) == sentence


@pytest.mark.parametrize("cause", STAGES)
def test_a_heavy_stage(cause: Cause) -> None:
    found = Stragglers(verdict="heavy_stage", ranks=[late(cause), late(cause, 3)], gain=0.2)
    why, how = STAGES[cause]
    assert say_lateness(job(found)) == (
        f"The pipeline stage of ranks 2 and 3 holds the job up: the others wait for {why}. Potential saving: 20.0 % "
        f"of each iteration, which would take 360 ms on average instead of 450 ms {how}."
    )


@pytest.mark.parametrize("cause", MOVING)
def test_lateness_that_moves(cause: Cause) -> None:
    found = Stragglers(verdict="moving_imbalance", cause=cause, gain=0.2, smallest_gain=0.042)
    assert say_lateness(job(found)) == (
        f"No single rank is late by more than 4.2 % of an iteration, but the ranks are slow in turns, {MOVING[cause]}. "
        "Potential saving: 20.0 % of each iteration, which would take 360 ms on average instead of 450 ms."
    )


FEW, MANY = list(range(10)), list(range(60))
"""Iterations of which a verdict is made."""


@pytest.mark.parametrize(("found", "lower"), [
    (Stragglers(smallest_gain=0.05, lasting_gain=0.02, low_floor_iterations=10, iterations=FEW), ""),
    (Stragglers(smallest_gain=0.09, lasting_gain=0.02, low_floor_iterations=38, iterations=FEW),
     ". About 40 iterations would lower that to 5 %"),
    (Stragglers(smallest_gain=0.09, lasting_gain=0.02, low_floor_iterations=101, iterations=FEW),
     ". Even 100 iterations would not lower that to 5 %, for they differ too much"),
    (Stragglers(smallest_gain=0.09, lasting_gain=0.06, iterations=FEW),
     ". More iterations would lower that to 6.0 % at best: the ranks themselves differ"),
    (Stragglers(smallest_gain=0.09, lasting_gain=0.085, iterations=MANY),
     ". More iterations would hardly lower that: the ranks themselves differ"),
    (Stragglers(smallest_gain=0.09), ""),  # a report of an older version
])  # fmt: skip
def test_a_high_floor_is_said_with_what_would_lower_it(found: Stragglers, lower: str) -> None:
    found = msgspec.structs.replace(found, verdict="nobody")
    gain = 100 * (found.smallest_gain or 0)
    assert say_lateness(job(found)) == f"No rank is late by more than {gain:.1f} % of an iteration{lower}."


@pytest.mark.parametrize(("waited_ns", "lower"), [
    (120 * MS,
     ". Fewer programs and threads beside the job would lower that: the training threads wait for a core 12.0 % of the "
     "time"),
    (10 * MS, ""),
    (None, ""),
])  # fmt: skip
def test_neighbors_are_named_where_threads_wait_for_cores(waited_ns: int | None, lower: str) -> None:
    nobody = Stragglers(verdict="nobody", smallest_gain=0.09, lasting_gain=0.02, low_floor_iterations=38)
    report = job(nobody, kind="cpu")
    cores = CoreUse(sampled_ns=1000 * MS, waited_ns=waited_ns)
    report = msgspec.structs.replace(
        report, ranks=[msgspec.structs.replace(rank, cores=cores) for rank in report.ranks]
    )
    assert say_lateness(report) == (
        f"No rank is late by more than 9.0 % of an iteration. About 40 iterations would lower that to 5 %{lower}."
    )


@pytest.mark.parametrize(("found", "sentence"), OTHERS)
def test_every_other_verdict(found: Stragglers, sentence: str) -> None:
    assert say_lateness(job(found)) == sentence


def test_no_verdict_and_no_cause_is_left_out() -> None:
    assert {*LATE, *STAGES} == {*HOST_WAITS, *STAGES} == {*get_args(Cause)}
    verdicts = {found.verdict for found, _ in OTHERS} | {"straggler", "heavy_stage", "moving_imbalance"}
    assert verdicts == {*get_args(get_args(Stragglers.__annotations__["verdict"])[0])}
