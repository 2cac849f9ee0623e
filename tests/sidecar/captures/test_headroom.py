"""The last look before an order is placed: memory of the trainer, disk of the pod."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import RecordingCost
from fleetprof_api.report.recording import FIXED_BYTES, FLOOR_BYTES, MIB
from fleetprof_sidecar.captures.headroom import Disk
from fleetprof_sidecar.delivery.spool import FREE_MARGIN_BYTES
from fleetprof_sidecar.processes.events import AgentMessage, Gone
from fleetprof_sidecar.processes.views import StepView
from harness.sidecar.captures_in_memory import NOW, CapturesBench, S, TableInMemory, view
from harness.sidecar.played_capture import play

ESTIMATE = hub_pb2.RecordingEstimate(events_per_iteration=10_000, trace_bytes_per_iteration=8 * MIB)
NEEDED = FIXED_BYTES + 20 * 18_000_000


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[CapturesBench]:
    made = CapturesBench(tmp_path, TableInMemory())
    yield made
    await made.work.close()
    made.spool.close()


@pytest.mark.attack
@pytest.mark.parametrize(
    ("headroom", "reason"),
    [(0, ""), (NEEDED + FLOOR_BYTES, ""), (NEEDED + FLOOR_BYTES - 1, "NoMemory")],
)
@pytest.mark.parametrize("has_agent", [True, False])
def test_a_recording_that_has_no_room_in_memory_is_never_ordered(
    bench: CapturesBench, headroom: int, reason: str, has_agent: bool
) -> None:
    bench.table.views["p"] = view(memory_headroom_bytes=headroom, has_agent=has_agent)
    bench.arm(estimate=ESTIMATE)
    assert bench.last().reason == reason
    assert ("p" in bench.table.orders) == (not reason)
    if reason:
        assert "may take 439 MiB more, and recording 20 iterations needs 439 MiB" in bench.last().message
        assert ("arm", "cap") not in bench.table.agent_messages


@pytest.mark.parametrize(("headroom", "reason"), [(2 * NEEDED + FLOOR_BYTES, ""), (2 * NEEDED, "NoMemory")])
def test_ranks_of_one_pod_share_its_memory(bench: CapturesBench, headroom: int, reason: str) -> None:
    for number in range(2):
        bench.table.views[f"p{number}"] = view(f"p{number}", memory_headroom_bytes=headroom)
    bench.arm(estimate=ESTIMATE, orders=[hub_pb2.Order(process_id=f"p{n}", rank=n) for n in range(2)])
    assert bench.last().reason == reason
    assert not reason or "for the 2 ranks here" in bench.last().message


@pytest.mark.attack
def test_as_many_ranks_record_as_the_disk_has_room_for(bench: CapturesBench, monkeypatch: pytest.MonkeyPatch) -> None:
    each = 20 * 8 * MIB * 5 // 4 * 9 // 8
    monkeypatch.setattr(Disk, "room_bytes", lambda _: 2 * each + each // 2)
    for number in range(4):
        bench.table.views[f"p{number}"] = view(f"p{number}")
    orders = [hub_pb2.Order(process_id=f"p{number}", rank=number) for number in range(4)]
    bench.arm(estimate=ESTIMATE, orders=orders)
    assert sorted(bench.table.orders) == ["p0", "p1"]
    assert bench.last().reason == "DiskFull"
    assert "there are 562 MiB left on the volume of /" in bench.last().message
    assert ", 450 MiB of it for other ranks, where 64.0 MiB stay free for others" in bench.last().message


def test_a_full_disk_is_told_before_anything_begins_whatever_is_known(
    bench: CapturesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk, "room_bytes", lambda _: 0)
    bench.arm()
    assert (bench.last().reason, bench.table.orders) == ("DiskFull", {})


def test_what_its_last_recording_took_counts_where_the_hub_knows_nothing(bench: CapturesBench) -> None:
    bench.table.views["p"] = view(memory_headroom_bytes=64 * MIB + NEEDED - 1)
    bench.history.note(finished(events=50_000))
    bench.arm("cap-2")
    assert bench.last("cap-2").reason == "NoMemory"
    bench.captures.on_process_event(Gone("p", NOW, True))
    bench.arm("cap-3")
    assert bench.last("cap-3").reason == ""


def finished(events: int) -> Any:
    capture, _ = play([])
    return msgspec.structs.replace(capture, cost=RecordingCost(iterations=5, events=events))


@pytest.mark.parametrize("recording", [True, False])
def test_a_shortage_that_the_agent_sees_ends_the_capture_with_its_figures(
    bench: CapturesBench, recording: bool
) -> None:
    bench.arm()
    short = {"t": "short", "capture": "cap", "headroom_bytes": 50 * MIB, "needed_bytes": 90 * MIB}
    bench.captures.on_process_event(AgentMessage("p", {**short, "recording": recording}))
    assert (bench.last().reason, bench.table.orders) == ("NoMemory", {})
    assert "the process could take 50.0 MiB more, and the trace would need 90.0 MiB" in bench.last().message


def test_a_recording_that_the_agent_drops_ends_for_want_of_memory_and_not_for_something_else(
    bench: CapturesBench,
) -> None:
    bench.started()
    short = {"t": "short", "capture": "cap", "headroom_bytes": 1, "needed_bytes": 9, "recording": True}
    bench.captures.on_process_event(AgentMessage("p", short))
    bench.captures.on_process_event(AgentMessage("p", {"t": "cancelled", "capture": "cap"}))
    measured = {"before_bytes": 1, "peak_bytes": 3, "after_bytes": 2}
    bench.captures.on_process_event(AgentMessage("p", {"t": "memory", "capture": "cap", **measured}))
    assert (bench.last().reason, bench.last().recording_cost.memory_peak_bytes) == ("NoMemory", 3)


def test_the_agent_is_told_what_the_recording_needs_and_when_it_is(
    bench: CapturesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[dict[str, Any]] = []

    def send(_: str, kind: str, **fields: Any) -> bool:
        orders.append(fields)
        return True

    monkeypatch.setattr(bench.table, "send_to_agent", send)
    bench.table.views["p"] = view(step=StepView(10, NOW, S // 10, 1))
    bench.arm(estimate=ESTIMATE)
    assert (orders[0]["memory_needed_bytes"], orders[0]["first_step"], orders[0]["start_unix_ns"]) == (
        NEEDED,
        100,
        None,
    )
    window = hub_pb2.Window(duration_ns=2 * S)
    bench.table.views["q"] = view("q", step=StepView(10, NOW, S // 10, 1))
    bench.arm("cap-2", "q", window=window, start_unix_ns=NOW + 9 * S, estimate=ESTIMATE)
    assert (orders[1]["start_unix_ns"], orders[1]["end_unix_ns"]) == (NOW + 9 * S, NOW + 11 * S)
    assert orders[1]["memory_needed_bytes"] == FIXED_BYTES + 21 * 18_000_000


def test_the_disk_has_what_its_volume_and_the_pods_limit_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Volume:
        f_frsize, f_bavail = 1, FREE_MARGIN_BYTES + 1000 * MIB

    monkeypatch.setattr("os.statvfs", lambda _: Volume)
    traces, spool = tmp_path / "traces", tmp_path / "spool"
    traces.mkdir()
    spool.mkdir()
    assert Disk(traces, spool).room_bytes() == 1000 * MIB
    assert Disk(traces, spool, 400 * MIB).room_bytes() == 300 * MIB
    (spool / "f").write_bytes(b"x" * (2 * MIB))
    assert abs(Disk(traces, spool, 400 * MIB).room_bytes() - 298 * MIB) < MIB
    Volume.f_bavail = 0
    assert Disk(traces, spool, 400 * MIB).room_bytes() == 0
