"""A late rank whose work was launched in time is not late by its host; one whose host launches late is."""

import pytest
from fleetprof_analyzer.job.device_waits import name_device_waits
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Iteration, Rank, TimeBreakdown
from fleetprof_api.report.stragglers import Cause, LateHost, Straggler, Stragglers
from msgspec.structs import replace

LATENESS = 700
IDLE = {"waiting": 7_700, "host": 300}
OTHERS = {"waiting": 4_200, "host": 300}


def rank(number: int, idle: dict[str, int] | None, iterations: int = 5) -> Rank:
    return Rank(
        rank=number, source=str(number), kind="gpu", time_basis="device", time_ns=TimeBreakdown(span=50_000),
        iterations=[Iteration(index=at, start_ns=at, duration_ns=10_000) for at in range(iterations)],
        idle_ns=None if idle is None else IdleCauses(**idle),
    )  # fmt: skip


def judge(cause: Cause, late: dict[str, int] | None, others: dict[str, int] | None = OTHERS) -> Cause:
    found = Stragglers(verdict="straggler", ranks=[Straggler(rank=2, lateness_ns=LATENESS, cause=cause)])
    ranks = [rank(0, others), rank(1, others), rank(2, late), rank(3, others)]
    return name_device_waits(found, ranks).ranks[0].cause


@pytest.mark.parametrize(
    ("cause", "late", "named"),
    [
        ("host", IDLE, "device_wait"),
        ("host", IDLE | {"waiting": 5_900}, "host"),  # less than half of what it is late
        ("host", IDLE | {"waiting_short": 3_000}, "host"),  # the latency of dependencies
        ("host", {"waiting": 4_200, "host": 3_800}, "host"),  # its host launched late
        ("host", {"waiting": 6_200, "host": 2_800}, "host"),  # the larger part of it
        ("host", {"waiting": 6_200, "optimizer": 2_800}, "host"),
        ("data_loading", IDLE, "data_loading"),
        ("host", None, "host"),
    ],
)
def test_which_cause_it_is(cause: Cause, late: dict[str, int] | None, named: Cause) -> None:
    assert judge(cause, late) == named


def test_what_is_not_known_of_the_others_and_what_a_node_is_blamed_for_stays() -> None:
    assert judge("host", IDLE, None) == "host"
    ranks = [rank(0, OTHERS), rank(2, IDLE)]
    late = Straggler(rank=2, lateness_ns=LATENESS, cause="host")
    host = LateHost(name="gpu-07", ranks=[2], captured=1, others=1, cause="host")
    found = Stragglers(verdict="straggler", ranks=[late], hosts=[host])
    assert name_device_waits(found, ranks) == found
    stage = replace(found, hosts=[], verdict="heavy_stage")
    assert name_device_waits(stage, ranks) == stage
