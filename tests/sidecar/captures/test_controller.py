"""Captures bound to a table of processes in memory: what cannot be brought about on command from outside."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_api.samples import HostColumns
from fleetprof_sidecar.processes.events import AgentMessage, BusyChanged, Delivered
from fleetprof_sidecar.processes.views import StepView
from fleetprof_sidecar.samples.rank_samples import PodFacts
from harness.sidecar.captures_in_memory import NOW, CapturesBench, S, TableInMemory, view
from harness.sidecar.played_capture import play


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[CapturesBench]:
    made = CapturesBench(tmp_path, TableInMemory())
    yield made
    await made.work.close()
    made.spool.close()


async def test_a_capture_that_slows_training_beyond_the_limit_is_stopped_in_the_process(bench: CapturesBench) -> None:
    bench.arm(max_slowdown_percent=50)
    bench.captures.on_process_event(Delivered("p", bench.now))
    (bench.traces / "cap-r0_7.json.tmp").touch()
    bench.look(1)
    for step, at in ((99, 0), (101, 4.5), (103, 9.1)):
        bench.table.views["p"] = view(step=StepView(step, NOW + int(at * S), S, 1))
        bench.look(1)
    assert bench.table.agent_messages == [("arm", "cap"), ("cancel", "cap")]
    bench.captures.on_process_event(AgentMessage("p", {"t": "cancelled", "capture": "cap"}))
    assert bench.last().reason == "Slowdown"
    assert "125 % slower" in bench.last().message


async def test_an_order_leaves_room_for_its_warm_up_in_optimizer_steps(bench: CapturesBench) -> None:
    bench.table.views["p"] = view(step=StepView(50, NOW, S, 4))
    bench.arm(window=hub_pb2.Window(iterations=20, warmup_iterations=3))
    assert bench.table.warmup_steps == {"p": 12}
    assert "ACTIVITIES_WARMUP_ITERATIONS=12" in bench.table.orders["p"].splitlines()


async def test_an_order_that_comes_when_its_time_is_over_is_never_placed(bench: CapturesBench) -> None:
    bench.arm(deliver_until_unix_ns=NOW)
    assert (bench.last().state, bench.last().reason) == (hub_pb2.FAILED, "TooLate")
    assert "when the time to hand it over had passed" in bench.last().message
    assert bench.table.orders == {}
    assert ("arm", "cap") not in bench.table.agent_messages


async def test_an_order_for_a_step_to_a_process_that_makes_none_says_so(bench: CapturesBench) -> None:
    bench.table.views["p"] = view(step=None)
    bench.arm()
    assert (bench.last().state, bench.last().reason) == (hub_pb2.FAILED, "NotStepping")


@pytest.mark.parametrize(
    ("name", "trace_id", "trainers"),
    [
        (b"Optimizer.step#AdamW.step", "cap-r0", ["p"]),
        (b"aten::add", "cap-r0", []),
        (b"Optimizer.step#AdamW.step", "other-r0", []),  # not this process's
    ],
)
async def test_a_trace_with_an_optimizer_step_shows_that_its_process_trains(
    bench: CapturesBench,
    kineto_trace: Callable[..., bytes],
    await_that: Any,
    name: bytes,
    trace_id: str,
    trainers: list[str],
) -> None:
    bench.started()
    (bench.traces / "cap-r0_7.json").write_bytes(kineto_trace(trace_id).replace(b"aten::op1", name))
    bench.look(1)
    await await_that(lambda: bench.last().state != hub_pb2.STARTED)
    assert bench.table.trainers == trainers


async def test_events_of_one_order_do_not_reach_another_capture(bench: CapturesBench) -> None:
    bench.arm("cap-a")
    bench.captures.receive(hub_pb2.HubMessage(cancel=hub_pb2.Cancel(capture_id="cap-a")))
    assert bench.table.orders == {}
    bench.arm("cap-b")
    bench.arm("cap-c")
    assert bench.last("cap-c").reason == "Busy"
    assert list(bench.table.orders) == ["p"]
    bench.captures.on_process_event(Delivered("p", bench.now))
    assert [bench.last(c).state for c in ("cap-a", "cap-b", "cap-c")] == [
        hub_pb2.FAILED,
        hub_pb2.ARMED,
        hub_pb2.FAILED,
    ]
    assert ("cancel", "cap-a") not in bench.table.agent_messages


async def test_an_agent_that_reports_another_capture_is_not_heard(bench: CapturesBench) -> None:
    bench.started()
    bench.captures.on_process_event(AgentMessage("p", {"t": "cancelled", "capture": "other"}))
    bench.look(60)
    assert bench.last().reason != "NotStepping"


async def test_a_process_that_does_not_return_after_a_restart_is_gone(bench: CapturesBench, tmp_path: Path) -> None:
    bench.started()
    bench.spool.close()
    (bench.traces / "cap-r0_7.json.tmp").unlink()
    empty = TableInMemory()
    empty.views.clear()
    again = CapturesBench(tmp_path, empty)
    again.captures.restore()
    again.look(19)
    assert again.sent == []
    again.look(2)
    again.look(3)
    assert again.last().reason == "ProcessKilled"
    again.spool.close()


async def test_an_order_from_before_a_restart_is_placed_once_its_process_shows_itself(
    bench: CapturesBench, tmp_path: Path
) -> None:
    bench.arm()
    bench.spool.close()
    table = TableInMemory()
    table.views.clear()
    again = CapturesBench(tmp_path, table)
    again.captures.restore()
    again.look(1)
    assert table.orders == {}
    table.views["p"] = view(has_agent=False, step=None)
    again.look(1)
    assert table.orders == {}
    table.views["p"] = view()
    again.look(1)
    again.look(1)
    assert list(table.orders) == ["p"]
    again.spool.close()


async def test_a_journal_that_cannot_be_written_stops_no_capture(
    bench: CapturesBench, monkeypatch: pytest.MonkeyPatch, kineto_trace: Callable[..., bytes], await_that: Any
) -> None:
    def no_space(capture: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench.spool, "record", no_space)
    bench.started()
    (bench.traces / "cap-r0_7.json").write_bytes(kineto_trace("cap-r0"))
    bench.look(1)
    await await_that(lambda: bench.last().state == hub_pb2.WRITTEN)


async def test_a_canary_tells_what_it_cost_and_nothing_of_it_is_stored(
    bench: CapturesBench, kineto_trace: Callable[..., bytes], await_that: Any
) -> None:
    bench.table.views["p"] = view(step=StepView(90, NOW, S // 100, 1))
    bench.arm(window=hub_pb2.Window(iterations=1), canary=True)
    bench.captures.on_process_event(Delivered("p", bench.now))
    bench.look(1)
    (bench.traces / "cap-r0_7.json").write_bytes(kineto_trace("cap-r0"))
    steps = {97: 10, 98: 20, 99: 30, 100: 45, 101: 100, 102: 5000}
    ends = [NOW - 10**9 + ms * 10**6 if step < 100 else NOW + ms * 10**6 for step, ms in steps.items()]
    times = {"t": "times", "capture": "cap", "step": list(steps), "end_unix_ns": ends}
    bench.captures.on_process_event(AgentMessage("p", times))
    bench.look(1)
    await await_that(lambda: bench.last().HasField("time_cost"))
    event = bench.last()
    assert event.state == hub_pb2.WRITTEN
    assert event.recording_cost.iterations == 1
    assert (event.time_cost.iteration_before_ns, event.time_cost.iterations_after) == (10 * 10**6, 1)
    assert not any(message.HasField("upload_request") for message in bench.sent)
    assert ("done", "cap") in bench.table.agent_messages
    bench.captures.receive(hub_pb2.HubMessage(release=hub_pb2.Release(capture_id="cap")))
    assert bench.spool.used_bytes() == 0
    assert bench.captures.held_events() == []


@pytest.mark.parametrize(
    ("reason", "reported"), [("DeadlineExceeded", "UploadFailed"), ("Cancelled", "Cancelled"), ("Internal", "Internal")]
)
async def test_a_trace_that_the_store_refuses_until_the_deadline_says_why(
    bench: CapturesBench, kineto_trace: Callable[..., bytes], await_that: Any, reason: str, reported: str
) -> None:
    bench.started()
    (bench.traces / "cap-r0_7.json").write_bytes(kineto_trace("cap-r0"))
    bench.look(1)
    await await_that(lambda: any(message.HasField("upload_request") for message in bench.sent))
    refusal = hub_pb2.UploadGrant(capture_id="cap", process_id="p", object=hub_pb2.TRACE, refusal="wrong credentials")
    refusal.retry_after_ns = 60 * S
    bench.captures.receive(hub_pb2.HubMessage(upload_grant=refusal))
    await await_that(lambda: bench.work.problem_of(("cap", "p")))
    assert bench.last().state == hub_pb2.WRITTEN
    assert bench.spool.used_bytes() > 0
    bench.captures.receive(
        hub_pb2.HubMessage(cancel=hub_pb2.Cancel(capture_id="cap", reason=reason, message="it is over"))
    )
    assert (bench.last().state, bench.last().reason) == (hub_pb2.FAILED, reported)
    assert bench.last().message == "it is over; the hub signs no upload: wrong credentials; the trace is discarded"


async def test_our_own_fault_in_one_capture_ends_only_that_one(
    bench: CapturesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.table.views["q"] = view("q")
    bench.arm()
    bench.arm("cap-q", "q")

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(bench.work, "compress", broken)
    (bench.traces / "cap-r0_7.json").write_text("{}")
    bench.look(1)
    assert (bench.last().state, bench.last().reason) == (hub_pb2.FAILED, "Internal")
    assert "a bug" in bench.last().message
    bench.captures.on_process_event(Delivered("q", bench.now))
    assert bench.last("cap-q").state == hub_pb2.ARMED


async def test_a_rank_without_the_agent_gets_the_sidecars_device_samples(
    bench: CapturesBench, kineto_trace: Callable[..., bytes], await_that: Any
) -> None:
    bench.table.views["p"] = view(has_agent=False, step=None)
    start = hub_pb2.Arm(start_unix_ns=NOW + 5 * S).start_unix_ns
    arm = hub_pb2.Arm(
        capture_id="cap",
        orders=[hub_pb2.Order(process_id="p", rank=0)],
        window=hub_pb2.Window(duration_ns=S),
        start_unix_ns=start,
        deliver_until_unix_ns=NOW + 50 * S,
        give_up_unix_ns=NOW + 100 * S,
    )
    bench.captures.receive(hub_pb2.HubMessage(arm=arm))
    task = asyncio.create_task(bench.sampler.run())
    recorder = bench.recorders.get(("cap", "p"))
    assert recorder is not None
    await await_that(lambda: bench.sampler.latest_devices)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    capture, _ = play([])
    samples = json.loads(recorder.document(capture, None, PodFacts("host", "node", 64), HostColumns(at_unix_ns=[])))
    assert set(samples["device"]["power_milliwatts"]) == {300_000}
    assert bench.table.agent_messages == []


async def test_what_a_capture_that_is_over_leaves_behind_is_taken_away(
    bench: CapturesBench, kineto_trace: Callable[..., bytes]
) -> None:
    bench.started()
    bench.captures.receive(hub_pb2.HubMessage(cancel=hub_pb2.Cancel(capture_id="cap", reason="Cancelled")))
    bench.look(11)
    assert bench.last().reason == "Cancelled"
    bench.captures.receive(hub_pb2.HubMessage(release=hub_pb2.Release(capture_id="cap")))
    assert bench.captures.held_events() == []
    tmp = bench.traces / "cap-r0_7.json.tmp"
    later = tmp.stat().st_mtime_ns + 5 * S
    bench.table.views["p"] = view(busy=True, last_poll_unix_ns=later)
    bench.look(1)
    assert tmp.exists()
    bench.table.views["p"] = view(last_poll_unix_ns=later)
    (bench.traces / "cap-r0_7.json").write_bytes(kineto_trace("cap-r0"))
    (bench.traces / "unknown-r0_7.json").write_bytes(kineto_trace("unknown-r0"))
    bench.look(1)
    assert [path.name for path in bench.traces.iterdir()] == ["unknown-r0_7.json"]


async def test_a_trace_that_went_to_kinetos_fallback_is_named_in_the_reason(
    bench: CapturesBench, tmp_path: Path
) -> None:
    bench.arm()
    bench.captures.on_process_event(Delivered("p", bench.now))
    bench.table.views["p"] = view(busy=True, step=StepView(100, bench.now, S, 1))
    bench.captures.on_process_event(BusyChanged("p", True, bench.now, step=100))
    (tmp_path / "libkineto_activities_7.json").write_text(json.dumps({}))
    bench.table.views["p"] = view(step=StepView(200, bench.now, S, 1), last_poll_unix_ns=bench.now + 30 * S)
    bench.look(30)
    assert bench.last().reason == "CannotWrite"
    assert "KINETO_ONDEMAND_TRACE_DIR=" in bench.last().message
