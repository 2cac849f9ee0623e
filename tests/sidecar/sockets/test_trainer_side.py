"""The trainer side as a whole, on real sockets, with simulated trainers: what subscribers see from poll to trace."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fleetprof_sidecar.kineto.config import build_config
from fleetprof_sidecar.processes.events import AgentMessage, BusyChanged, Delivered, Expired, Gone
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import OrderRefused
from fleetprof_sidecar.profiler import StepStart, TimeStart, TraceOrder
from fleetprof_sidecar.sockets.datagrams import SocketInUse
from fleetprof_sidecar.trainer_side import TrainerSide
from kineto_messages import trace_path
from simulated_job import Faults, SimulatedJob
from simulated_trainer import SimulatedTrainer

Launch = Callable[..., SimulatedTrainer]
E = TypeVar("E")


class RecordedSide(TrainerSide):
    """A trainer side, with all events that it told of."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.seen_events: list[object] = []
        self.table.events.subscribe(self.seen_events.append)


@pytest.fixture
def side(short_directory: str) -> Iterator[RecordedSide]:
    side = RecordedSide(short_directory)
    side.start()
    yield side
    side.stop()


@pytest.fixture
async def launch(side: RecordedSide) -> AsyncIterator[Launch]:
    """Starts simulated ranks; ends them afterwards."""
    started: list[SimulatedTrainer] = []

    def start(
        rank: int = 0, job: dict[str, Any] | None = None, faults: dict[str, Any] | None = None, **options: Any
    ) -> SimulatedTrainer:
        trainer = SimulatedTrainer(
            side.directory.path,
            rank,
            SimulatedJob(**{"step_s": 0.01, "poll_s": 0.05, "write_s": 0.02} | (job or {})),
            Faults(**(faults or {})),
        )
        for name, value in options.items():
            setattr(trainer, name, value)
        trainer.start()
        started.append(trainer)
        return trainer

    yield start
    for trainer in started:
        trainer.exit()


def order(side: RecordedSide, trainer: SimulatedTrainer, first_step: int, steps: int = 5) -> TraceOrder:
    return TraceOrder(
        output=f"{side.directory.traces}/c-r{trainer.rank}.json",
        trace_id=f"c-r{trainer.rank}",
        start=StepStart(first_step=first_step, steps=steps),
        device_kind="cpu",
    )


def events(side: RecordedSide, kind: type[E]) -> list[E]:
    return [event for event in side.seen_events if isinstance(event, kind)]


async def place(
    side: RecordedSide, trainer: SimulatedTrainer, await_that: Callable[..., Awaitable[Any]], lead: int = 40
) -> int:
    view = await await_that(lambda: (v := side.table.get(trainer.process_id)) and v.step and v.polls_kineto and v)
    first_step: int = view.step.latest_step(time.time_ns()) + lead
    config = build_config(order(side, trainer, first_step))
    side.table.place_order(trainer.process_id, config, time.time_ns() + 5 * 10**9, first_step)
    return first_step


async def test_agent_and_kineto_client_are_one_process(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch(rank=3, job={"world_size": 8})
    view = await await_that(lambda: (v := side.table.get(trainer.process_id)) and v.has_agent and v.polls_kineto and v)
    assert (view.role, view.candidate, view.rank, view.world_size) == (Role.TRAINER, True, 3, 8)
    assert (view.rank_source, view.pid, view.device_kind) == ("RANK_AGENT", trainer.pid, "cpu")
    assert len(side.table.snapshot()) == 1


async def test_an_order_becomes_the_trace_it_asked_for(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch()
    first_step = await place(side, trainer, await_that)
    written = await await_that(lambda: trainer.written)
    assert events(side, Delivered)
    assert trainer.first_recorded_steps == [first_step]
    assert written == [Path(trace_path(f"{side.directory.traces}/c-r0.json", trainer.pid))]
    document = json.loads(written[0].read_text())
    assert document["trace_id"] == "c-r0"
    assert len([e for e in document["traceEvents"] if e["name"].startswith("Optimizer.step#")]) == 5
    await await_that(lambda: [event.busy for event in events(side, BusyChanged)] == [True, False])
    assert len(trainer.configs) == 1


async def test_ranks_of_one_job_begin_with_the_same_step(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    started = time.time_ns()
    trainers = [launch(rank, {"world_size": 4, "started_unix_ns": started}) for rank in range(4)]
    for trainer in trainers:
        await await_that(lambda t=trainer: (v := side.table.get(t.process_id)) and v.step and v.polls_kineto)
    first_step = trainers[0].job.current_step() + 60
    for trainer in trainers:
        side.table.place_order(
            trainer.process_id, build_config(order(side, trainer, first_step)), time.time_ns() + 5 * 10**9, first_step
        )
    await await_that(lambda: all(trainer.written for trainer in trainers))
    assert [trainer.first_recorded_steps for trainer in trainers] == [[first_step]] * 4


async def test_an_order_too_late_for_its_step_is_not_given(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch(job={"poll_s": 0.4})
    await place(side, trainer, await_that, lead=3)
    expired = await await_that(lambda: events(side, Expired))
    assert [event.why for event in expired] == ["step"]
    assert trainer.configs == []


async def test_a_busy_process_keeps_its_order_until_the_deadline(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch(faults={"always_busy": True})
    await await_that(lambda: (v := side.table.get(trainer.process_id)) and v.busy and v.step)
    config = build_config(order(side, trainer, 10**6))
    side.table.place_order(trainer.process_id, config, time.time_ns() + 3 * 10**8, 10**6)
    expired = await await_that(lambda: events(side, Expired))
    assert [event.why for event in expired] == ["busy"]
    assert trainer.configs == []


async def test_a_withdrawn_order_is_never_given(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch(job={"poll_s": 0.3})
    await place(side, trainer, await_that, lead=300)
    assert side.table.withdraw_order(trainer.process_id) is True
    assert side.table.withdraw_order(trainer.process_id) is False
    polls = trainer.counters["polls"]
    await await_that(lambda: trainer.counters["polls"] >= polls + 3)
    assert trainer.configs == []


async def test_one_order_at_a_time(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch(job={"poll_s": 0.3})
    await place(side, trainer, await_that, lead=300)
    with pytest.raises(OrderRefused) as refused:
        side.table.place_order(trainer.process_id, "", time.time_ns() + 10**9, 10**6)
    assert refused.value.reason == "Outstanding"


async def test_a_process_that_ends_is_gone_within_moments(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    killed, leaving = launch(rank=0), launch(rank=1, faults={"orderly_end": True})
    await await_that(lambda: len([v for v in side.table.snapshot() if v.has_agent and v.polls_kineto]) == 2)
    killed.exit()
    leaving.exit()
    departures = await await_that(lambda: len(events(side, Gone)) == 2 and events(side, Gone))
    assert {event.process_id: event.orderly_end for event in departures} == {
        killed.process_id: False,
        leaving.process_id: True,
    }
    assert side.table.snapshot() == []


async def test_agent_answers_come_as_events(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch()
    await await_that(lambda: (v := side.table.get(trainer.process_id)) and v.step)
    arm = {"capture": "c", "first_step": 10, "last_step": 15, "sample_interval_ns": 10**8, "until_unix_ns": 2**62}
    assert side.table.send_to_agent(trainer.process_id, "arm", **arm)
    await await_that(lambda: [e.fields for e in events(side, AgentMessage)][:1] == [{"t": "armed", "capture": "c"}])
    assert side.table.send_to_agent(trainer.process_id, "done", capture="c", after_ns=0)
    times = await await_that(lambda: [e.fields for e in events(side, AgentMessage) if e.fields["t"] == "times"])
    assert len(times[0]["step"]) == len(times[0]["end_unix_ns"]) > 0


async def test_a_restarted_sidecar_learns_the_same_processes_by_the_same_names(
    short_directory: str, await_that: Callable[..., Awaitable[Any]]
) -> None:
    first = TrainerSide(short_directory)
    first.start()
    trainer = SimulatedTrainer(short_directory, 5, SimulatedJob(step_s=0.01, poll_s=0.05))
    trainer.start()
    await await_that(lambda: (v := first.table.get(trainer.process_id)) and v.rank == 5)
    first.stop()
    second = TrainerSide(short_directory)
    second.start()
    try:
        # The agent's next report is answered with a query, which brings its hello.
        await await_that(lambda: (v := second.table.get(trainer.process_id)) and v.rank == 5 and v.polls_kineto)
        assert len(second.table.snapshot()) == 1
    finally:
        trainer.exit()
        second.stop()


async def test_a_slow_subscriber_delays_no_answer(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    released = threading.Event()

    def wait(_event: object) -> None:
        released.wait(60)

    side.table.events.subscribe(wait)
    trainers = [launch(rank, {"poll_s": 0.1}) for rank in range(4)]
    try:
        await await_that(lambda: all(trainer.counters["replies"] >= 10 for trainer in trainers))
        # The subscriber is still at its first event. On a busy machine a poll may stay without its answer (70 ms).
        assert all(trainer.counters["polls"] <= 2 * trainer.counters["replies"] for trainer in trainers)
        assert len(side.table.events) > 0
    finally:
        released.set()


async def test_only_trainers_get_orders(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    job = {"agent": False}
    launcher = launch(rank=10, job=job, pid=50, ancestors=(49,))
    trainer = launch(rank=11, pid=51, ancestors=(50, 49))
    worker = launch(rank=12, job=job, pid=52, ancestors=(51, 50, 49))
    lone = launch(rank=13, job=job, pid=90, ancestors=(49,))
    await await_that(lambda: len([v for v in side.table.snapshot() if v.polls_kineto]) == 4)
    await await_that(lambda: (v := side.table.get(trainer.process_id)) and v.role is Role.TRAINER)
    reasons = {}
    for process in (launcher, worker, lone):
        with pytest.raises(OrderRefused) as refused:
            side.table.place_order(process.process_id, "", time.time_ns() + 10**9, None, chosen=True)
        reasons[process.rank] = refused.value.reason
    assert reasons == {10: "Launcher", 12: "Worker", 13: "NotChosen"}


async def test_one_sidecar_to_a_directory(side: RecordedSide, short_directory: str) -> None:
    with pytest.raises(SocketInUse, match="another sidecar serves this directory"):
        TrainerSide(short_directory).start()
    assert {path.name for path in Path(short_directory).iterdir()} >= {"dynolog", "fleetprof"}


async def test_stopping_leaves_no_socket(short_directory: str) -> None:
    side = TrainerSide(short_directory)
    side.start()
    side.stop()
    side.stop()
    assert {path.name for path in Path(short_directory).iterdir()} == {"traces", "agent", "libkineto.conf"}


async def test_a_start_that_fails_leaves_nothing_running(short_directory: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taken:
        taken.bind(f"{short_directory}/dynolog")
        side = TrainerSide(short_directory)
        with pytest.raises(SocketInUse):
            side.start()
    assert not (Path(short_directory) / "fleetprof").exists()
    await asyncio.sleep(0)


async def test_a_start_by_time_records_the_asked_window(
    side: RecordedSide, launch: Launch, await_that: Callable[..., Awaitable[Any]]
) -> None:
    trainer = launch(rank=0)
    await await_that(lambda: (v := side.table.get(trainer.process_id)) and v.step and v.polls_kineto)
    start_ms = time.time_ns() // 10**6 + 2500
    wanted = TraceOrder(
        output=f"{side.directory.traces}/t-r0.json",
        trace_id="t-r0",
        start=TimeStart(start_unix_ms=start_ms, duration_ms=200),
        device_kind="cpu",
    )
    side.table.place_order(trainer.process_id, build_config(wanted), time.time_ns() + 10**9, None)
    written = await await_that(lambda: trainer.written)
    document = json.loads(written[0].read_text())
    starts = [document["baseTimeNanoseconds"] + int(e["ts"] * 1000) for e in document["traceEvents"]]
    assert all(start_ms * 10**6 - 10**7 <= start <= (start_ms + 200) * 10**6 for start in starts)
    assert starts
