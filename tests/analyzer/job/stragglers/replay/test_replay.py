"""The replay agrees with a naive one to the nanosecond, and with what was measured."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.replay.course import HALF_NEVER, Scenario
from fleetprof_analyzer.job.stragglers.replay.matching import match
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from harness.traces.planted.faults import draw, operations_of
from harness.traces.planted.shapes import JobShape
from harness.traces.simulated.cases import draw_simulated
from harness.traces.straggler_sections import operations_of_traces

SHAPES = (
    JobShape(dp=3, layers=2), JobShape(dp=2, tp=2, layers=2), JobShape(dp=2, pp=3, microbatches=3, layers=1),
    JobShape(dp=3, sharded=True, layers=2), JobShape(dp=3, layers=2, meets_on_host=True),
    JobShape(dp=4, sharded=True, replicas=2, layers=2), JobShape(dp=4, sharded=True, layers=3, beside=True),
    JobShape(dp=2, pp=2, microbatches=3, layers=1, beside=True),
)  # fmt: skip


def naive(replay: Replay, scenario: Scenario) -> tuple[int, list[int]]:
    """Walks every rank's marks again and again until no end moves: (length, how long each chain stood still)."""
    layout = replay.layout
    awaits = np.arange(len(layout.mark_rank))
    awaits[layout.stop_mark] = np.where(layout.stop_awaits >= 0, layout.stop_mark[layout.stop_awaits], -1)
    ends = [0] * layout.collectives
    moved = True
    while moved:
        arrivals: dict[int, list[int]] = {}
        blocked = []
        for rank in range(len(replay.matched.ranks)):
            time, host, stood = 0, -int(replay.ahead_ns[rank]), 0
            reached = {}
            with_host = bool(replay.has_host[rank])
            for mark in np.flatnonzero(layout.mark_rank == rank).tolist():
                operation = int(layout.mark_operation[mark])
                collective = int(layout.collective[operation])
                host += int(scenario.host_ns[mark])
                time = max(time + int(scenario.work_ns[mark]), host + int(scenario.tail_ns[mark]))
                if layout.mark_joins[mark]:
                    stood += max(ends[collective] - time, 0)
                    time = max(time, ends[collective])
                reached[mark] = time
                if layout.mark_waits[mark]:
                    host = max(host, ends[collective] if layout.mark_joins[mark] else reached.get(int(awaits[mark]), 0))
                if layout.mark_stops[mark]:
                    continue
                previous = int(layout.previous[operation])
                waits = replay.gather("after_local")[operation] or (previous < 0 and not with_host)
                ready = ([time] if waits else []) + ([host] if with_host else [])
                before = [one for one in (previous, int(layout.behind[operation])) if one >= 0]
                ready += [ends[int(layout.collective[one])] for one in before]
                arrivals.setdefault(collective, []).append(max(ready) + int(scenario.lag_ns[operation]))
            blocked.append(stood)
        new = [max(arrivals[c]) + int(scenario.transfer_ns[c]) for c in range(layout.collectives)]
        moved, ends = new != ends, new
    return max(ends), blocked


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"dp{shape.dp} tp{shape.tp} pp{shape.pp} {shape.layers}")
@pytest.mark.parametrize("launch_share", [0.5, 1.5], ids=["device-bound", "launch-bound"])
def test_it_agrees_with_a_naive_one_and_with_the_traces(shape: JobShape, launch_share: float) -> None:
    _, traces, job = draw("none", 3, [shape], launch_shares=[launch_share])
    matched = match(operations_of(job, traces))
    assert matched.unmatched == 0
    replay = Replay(matched)
    outcome = replay.run([replay.as_measured()])
    assert (int(outcome.total_ns[0]), outcome.blocked_ns[:, 0].tolist()) == naive(replay, replay.as_measured())
    assert replay.fidelity() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("host_percent", [100, 50, 0])
def test_a_host_that_waits_for_an_earlier_layer_leads_by_no_more_than_what_it_may(host_percent: int) -> None:
    """Sharded weights, of which no more than two layers' are gathered ahead."""
    case = draw_simulated("fsdp", "none", 106001)
    replay = Replay(match(operations_of_traces(case.job.traces())))
    assert (replay.layout.stop_awaits != np.arange(len(replay.layout.stop_awaits))).any()
    measured = replay.as_measured()
    scenario = replace(measured, host_ns=measured.host_ns * host_percent // 100)
    outcome = replay.run([scenario])
    assert (int(outcome.total_ns[0]), outcome.blocked_ns[:, 0].tolist()) == naive(replay, scenario)
    assert replay.fidelity() == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize("times", [2, 100_000])
def test_work_that_is_many_times_as_long_is_added(times: int) -> None:
    """Also where the window begins, before which nothing is known of the launches."""
    _, traces, job = draw("none", 3, [JobShape(dp=3, layers=2)])
    replay = Replay(match(operations_of(job, traces)))
    work = replay.work_ns * times
    longer = replay.with_times(work, replay.host_ns, work > 0)
    assert longer.work_ns.sum() == pytest.approx(times * replay.as_measured().work_ns.sum(), rel=0.01)
    assert (longer.tail_ns == replay.as_measured().tail_ns)[replay.as_measured().tail_ns < HALF_NEVER].all()
