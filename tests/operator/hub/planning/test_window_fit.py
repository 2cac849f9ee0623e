"""The length of a window: what was asked, what one iteration takes, what each rank may still take → the window."""

from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.report.recording import FIXED_BYTES, FLOOR_BYTES, MIB, MOST_EVENTS
from fleetprof_api.request import Spec, parse_request
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.planning.window_fit import fit_window

GIB = 1 << 30
# 10,000 events: 17.2 MiB of memory without options, 47.7 MiB with shapes.
SMALL = RecordingEstimate(events_per_iteration=10_000)
EACH = 18_000_000
LIGHT = RecordingEstimate(events_per_iteration=1, trace_bytes_per_iteration=8 * MIB)


def spec(collect: list[str] | None = None, limits: dict[str, int] | None = None, **window: int) -> Spec:
    request = parse_request(
        {
            "apiVersion": "fleetprof.io/v1alpha1",
            "kind": "ProfileRequest",
            "metadata": {"name": "r"},
            "spec": {
                "target": {"selector": {"matchLabels": {"app": "a"}}},
                "window": window or {"iterations": 100},
                "collect": collect or [],
                "limits": limits or {"maxTraceBytes": 1 << 36},
            },
        }
    )
    return request.spec


def target(rank: int, headroom: int, sidecar: str = "", iteration_ns: int = 10**8) -> RankTarget:
    process = pb.Process(
        process_id=f"p{rank}", memory_headroom_bytes=headroom, step=pb.StepState(iteration_ns=iteration_ns)
    )
    return RankTarget(
        rank=rank,
        rank_source="RANK_AGENT",
        sidecar_id=sidecar or f"s{rank}",
        pod_name="",
        node_name="",
        process=process,
    )


def need_of(iterations: int, ranks: int = 1) -> int:
    return FLOOR_BYTES + ranks * (FIXED_BYTES + iterations * EACH)


def room_for(iterations: int, ranks: int = 1) -> int:
    """An eighth of it is left alone."""
    return -(-need_of(iterations, ranks) * 8 // 7)


@pytest.mark.parametrize(
    ("targets", "iterations"),
    [
        ([target(0, room_for(100))], 100),
        ([target(0, room_for(100) - 2)], 99),
        ([target(0, room_for(7))], 7),
        ([target(0, room_for(1))], 1),
        ([target(0, need_of(1))], 1),  # one may use that eighth as well
        ([target(0, 0)], 100),  # nobody knows what is left
        # The same iterations on every rank: the least room decides.
        ([target(0, 64 * GIB), target(1, room_for(12)), target(2, 64 * GIB)], 12),
        # Ranks of one pod share its memory, and each sees all of it.
        ([target(n, room_for(12, ranks=4), "pod") for n in range(4)], 12),
        ([target(n, room_for(12, ranks=4), "pod" if n < 2 else "") for n in range(4)], 25),
    ],
)
def test_the_window_is_as_long_as_every_rank_has_memory_for(targets: list[RankTarget], iterations: int) -> None:
    fit = fit_window(spec(), targets, SMALL)
    assert (fit.window.iterations, fit.refusal) == (iterations, "")
    assert bool(fit.note) == (iterations < 100)


def test_what_was_shortened_is_told_with_figures() -> None:
    fit = fit_window(spec(["Shapes"]), [target(3, GIB)], SMALL)
    assert fit.window.iterations == 16
    assert fit.note == (
        "the window is 16 iterations instead of 100: rank 3 may take 1.00 GiB of memory more, and recording takes "
        "79.7 MiB for one iteration of a rank and 47.7 MiB for each further one"
    )


def test_what_does_not_fit_at_all_is_refused_with_figures_and_the_next_step() -> None:
    fit = fit_window(spec(), [target(n, need_of(1, 2) - 1, "pod") for n in range(2)], SMALL)
    assert "rank 0 with the 1 ranks beside it may take 162 MiB of memory more" in fit.refusal
    assert "capture fewer ranks or less of collect" in fit.refusal


@pytest.mark.parametrize(
    ("estimate", "limits", "iterations", "says"),
    [
        (None, {}, 100, ""),
        (RecordingEstimate(), {}, 100, ""),
        (RecordingEstimate(events_per_iteration=MOST_EVENTS // 100), {}, 100, ""),
        (RecordingEstimate(events_per_iteration=MOST_EVENTS // 50), {}, 50, "a rank records at most 4,000,000"),
        (RecordingEstimate(events_per_iteration=2 * MOST_EVENTS), {}, 1, "a rank records at most 4,000,000"),
        (LIGHT, {"maxTraceBytes": 1000 * MIB}, 100, ""),
        (LIGHT, {"maxTraceBytes": 100 * MIB}, 10, "limits.maxTraceBytes is 100 MiB"),
    ],
)
def test_the_window_is_bounded_by_events_and_by_the_length_of_the_trace(
    estimate: RecordingEstimate | None, limits: dict[str, int], iterations: int, says: str
) -> None:
    fit = fit_window(spec(limits=limits), [target(0, 0)], estimate)
    assert fit.window.iterations == iterations
    assert says in fit.note


@pytest.mark.parametrize(
    ("iteration_ns", "headroom", "millis"),
    [(10**8, 64 * GIB, 5000), (10**8, room_for(20), 2000), (0, room_for(20), 5000)],
)
def test_a_window_by_time_is_as_long_as_its_iterations(iteration_ns: int, headroom: int, millis: int) -> None:
    fit = fit_window(spec(durationMillis=5000), [target(0, headroom, iteration_ns=iteration_ns)], SMALL)
    assert fit.window.duration_millis == millis


@pytest.mark.parametrize(
    ("window", "iteration_ns", "iterations", "millis", "says"),
    [
        ({"iterations": 10, "durationMillis": 5000}, 10**8, 10, None, ""),
        ({"iterations": 100, "durationMillis": 5000}, 10**8, 50, None, "50 iterations instead of 100: one takes 0.1 s"),
        ({"iterations": 3, "durationMillis": 5000}, 3 * 10**9, 1, None, "1 iteration instead of 3: one takes 3 s"),
        (
            {"iterations": 1, "durationMillis": 5000},
            6 * 10**9,
            None,
            5000,
            "instead of 1 iteration: one takes 6 s",
        ),
        ({"iterations": 3, "durationMillis": 5000}, 0, 3, 5000, ""),
    ],
)
def test_a_window_of_iterations_and_a_time_ends_with_the_first(
    window: dict[str, Any], iteration_ns: int, iterations: int | None, millis: int | None, says: str
) -> None:
    fit = fit_window(spec(**window), [target(0, 0, iteration_ns=iteration_ns)], None)
    assert (fit.window.iterations, fit.window.duration_millis) == (iterations, millis)
    assert says in fit.note
    assert bool(fit.note) == bool(says)


def test_a_shorter_window_keeps_its_warm_up() -> None:
    window: dict[str, Any] = {"iterations": 100, "warmupIterations": 3}
    fit = fit_window(spec(**window), [target(0, room_for(5))], SMALL)
    assert (fit.window.iterations, fit.window.warmup_iterations) == (5, 3)


COST = pb.RecordingCost(
    iterations=5,
    events=50_000,
    trace_bytes=13 * MIB,
    memory_before_bytes=700 * MIB,
    memory_peak_bytes=790 * MIB,
    memory_after_bytes=705 * MIB,
)


@pytest.mark.attack
async def test_what_the_last_capture_took_shortens_the_next_or_refuses_it(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0, memory_headroom_bytes=room_for(8)))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    assert not arm.HasField("estimate")
    await sidecar.say(uid, "p0", 0, "WRITTEN", recording_cost=COST)
    await sidecar.upload(ground.store, uid, arm.orders[0], b"trace")
    await sidecar.say(uid, "p0", 0, "UPLOADED", recording_cost=COST)
    status = await ground.await_end(uid)
    assert status.ranks[0].recording_cost == COST
    await sidecar.expect("release")

    long = kit.make_request(window={"iterations": 100})
    uid = (await ground.hub.submit(long, "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    assert (arm.window.iterations, arm.asked_iterations) == (8, 8)
    assert (arm.estimate.events_per_iteration, arm.estimate.memory_bytes_per_iteration) == (10_000, 0)
    message = next(c.message for c in (await ground.status(uid)).conditions if c.type == "TargetsResolved")
    assert "the window is 8 iterations instead of 100: rank 0 may take" in message
    await ground.hub.cancel(uid)
    await sidecar.say(uid, "p0", 0, "FAILED", reason="Cancelled", message="m")
    await ground.await_end(uid)

    sidecar.processes[0].memory_headroom_bytes = need_of(1) - 1
    await sidecar.beat()
    await ground.await_fleet(lambda fleet: fleet[0].processes[0].memory_headroom_bytes == need_of(1) - 1)
    uid = (await ground.hub.submit(long, "team", fail_fast=True)).uid
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "NoMemory")


async def test_shapes_that_were_never_recorded_are_not_guessed_at(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0, memory_headroom_bytes=room_for(8)))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.expect("arm")
    await sidecar.say(uid, "p0", 0, "FAILED", reason="Internal", message="m", recording_cost=COST)
    await ground.await_end(uid)
    await ground.hub.submit(kit.make_request(collect=["Shapes"]), "team", fail_fast=True)
    assert not (await sidecar.expect("arm")).HasField("estimate")
