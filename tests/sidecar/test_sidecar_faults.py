"""The sidecar as a process when something is wrong: each fault has a named end, and the sidecar lives."""

import asyncio
import contextlib
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_sidecar.main import SPOOL_BYTES
from harness.sidecar.armed_captures import NS, Await, arm, known_trainers, reached

FAULTS = {
    "exits_before_capture": {"ProcessKilled"},
    "exits_mid_capture": {"ProcessKilled"},
    "exits_after_capture": {""},
    "ignores_orders": {"NotStarted"},
    "user_profiler": {"CancelledByUserProfiler"},
    "wrong_trace_id": {"WrongTrace"},
    "empty_trace": {"EmptyTrace"},
    "truncated_trace": {"CorruptTrace"},
    "no_file": {"CannotWrite", "NotStarted"},  # a window between two polls is never seen to be busy
    "always_busy": {"Busy"},
}


async def test_each_fault_of_a_trainer_ends_in_its_reason(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, short_directory: str
) -> None:
    start_sidecar()
    common = ("--ranks", "1", "--step-ms", "20", "--poll-ms", "200", "--world-size", "12")
    started = ("--started-unix-ns", str(time.time_ns()))
    for rank, fault in enumerate(FAULTS):
        start_trainers(*common, *started, "--first-rank", str(rank), "--fault", fault)
    leaving = ("--fault", "exits_mid_capture", "--fault", "orderly_end")
    start_trainers(*common, *started, "--first-rank", "10", *leaving)
    start_trainers(*common, *started, "--first-rank", "11")
    await await_that(known_trainers(hub, 12), 90)
    arm(hub, lead=250, deliver_until_unix_ns=time.time_ns() + 5 * NS)
    for rank in range(12):
        await await_that(reached(hub, "cap-1", rank, "UPLOADED", "FAILED"), 90)
    reasons = {rank: hub.last("cap-1", rank).reason for rank in range(12)}
    assert {fault: reasons[rank] in wanted for rank, (fault, wanted) in enumerate(FAULTS.items())} == dict.fromkeys(
        FAULTS, True
    ), reasons
    assert (reasons[10], reasons[11]) == ("ProcessExited", "")
    assert all(hub.last("cap-1", rank).message for rank in range(11) if reasons[rank])
    await await_that(lambda: not list((Path(short_directory) / "traces").glob("*.json")))


async def test_the_spools_limit_is_a_named_end(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, tmp_path: Path
) -> None:
    start_sidecar()
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 1))
    with (tmp_path / "spool/files/other.trace.json.gz").open("wb") as file:
        file.truncate(SPOOL_BYTES)  # without a block on the disk
    arm(hub)
    await await_that(reached(hub, "cap-1", 0, "FAILED"))
    assert hub.last("cap-1").reason == "SpoolFull"
    (tmp_path / "spool/files/other.trace.json.gz").unlink()
    arm(hub, "cap-2")
    await await_that(reached(hub, "cap-2", 0, "UPLOADED"))


async def test_a_full_disk_is_a_named_end_and_the_sidecar_lives(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, tmp_path: Path
) -> None:
    (tmp_path / "spool").mkdir()
    # Smaller than what is left to others on any volume.
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(tmp_path / "spool")]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small volume needs root")
    try:
        sidecar = start_sidecar()
        start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
        await await_that(known_trainers(hub, 1))
        arm(hub)
        await await_that(reached(hub, "cap-1", 0, "FAILED"))
        assert hub.last("cap-1").reason == "DiskFull"
        with contextlib.suppress(OSError), (tmp_path / "spool/ballast").open("wb") as file:
            while True:
                file.write(b"x" * 65536)
                file.flush()
        # Not even the journal can be written now.
        arm(hub, "cap-2")
        await await_that(reached(hub, "cap-2", 0, "FAILED"))
        assert hub.last("cap-2").reason == "DiskFull"
        assert await sidecar.leave() == 0
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "spool")], check=True)


async def test_orders_that_make_no_sense_change_nothing(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await
) -> None:
    start_sidecar()
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 1))
    process_id = hub.processes()[0].process_id
    order = hub_pb2.Order(process_id=process_id, rank=0)
    window = hub_pb2.Window(iterations=5)
    soon: dict[str, Any] = {
        "give_up_unix_ns": time.time_ns() + 60 * NS,
        "deliver_until_unix_ns": time.time_ns() + 60 * NS,
    }
    bodies: list[dict[str, Any]] = [
        {"orders": [order], "window": window, "first_step": 9},
        {"capture_id": "../../x", "orders": [order], "window": window, "first_step": 9},
        {"capture_id": "c", "orders": [order], "window": window},
        {"capture_id": "c", "orders": [order], "first_step": 9},
        {"capture_id": "c", "orders": [hub_pb2.Order(rank=-1)], "window": window, "first_step": 9},
    ]
    for number, body in enumerate(bodies):
        hub.send(arm=hub_pb2.Arm(**body))
        hub.send(release=hub_pb2.Release(capture_id=f"unknown-{number}"))
    hub.send(cancel=hub_pb2.Cancel(capture_id="unknown", reason="no reason"))
    hub.send(upload_grant=hub_pb2.UploadGrant(capture_id="unknown"))
    hub.send(upload_verdict=hub_pb2.UploadVerdict(accepted=True))
    hub.send()
    bad: dict[str, Any] = {"orders": [order], "window": window, **soon}
    hub.send(arm=hub_pb2.Arm(capture_id="bad-collect", first_step=10**6, collect=["Everything"], **bad))
    hub.send(arm=hub_pb2.Arm(capture_id="bad-step", first_step=-5, **bad))
    other = hub_pb2.Order(process_id="nobody", rank=7)
    hub.send(arm=hub_pb2.Arm(capture_id="no-process", first_step=10**6, orders=[other], window=window, **soon))
    await await_that(reached(hub, "no-process", 7, "FAILED"))
    reasons = {capture_id: hub.last(capture_id).reason for capture_id in ("bad-collect", "bad-step")}
    assert reasons == {"bad-collect": "OverLimit", "bad-step": "OverLimit"}
    assert [e.message.split(":")[0] for e in hub.events if e.capture_id == "c"] == [
        "start",
        "window",
        "orders.rank -1 must be from 0 to 1000000",
    ]
    assert "Everything" in hub.last("bad-collect").message
    assert hub.last("no-process", 7).reason == "NotPolling"
    assert len(hub.hellos) == 1
    arm(hub)
    await await_that(reached(hub, "cap-1", 0, "UPLOADED"))


async def test_a_second_sidecar_on_the_same_spool_or_directory_is_refused(
    hub: Any, start_sidecar: Any, await_that: Await, tmp_path: Path
) -> None:
    start_sidecar()
    await await_that(lambda: bool(hub.hellos))
    second = start_sidecar()
    await await_that(lambda: not second.is_running())
    assert second.end() == 3
    other = start_sidecar("--spool", str(tmp_path / "other"))
    await await_that(lambda: not other.is_running())
    assert other.end() == 3
    assert "give each its own --spool" in second.text()


async def test_an_idle_sidecar_is_small(hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await) -> None:
    sidecar = start_sidecar(as_in_pods=True)
    start_trainers("--ranks", "8", "--step-ms", "50")
    await await_that(known_trainers(hub, 8))
    arm(hub)
    for rank in range(8):
        await await_that(reached(hub, "cap-1", rank, "UPLOADED"))
    status = Path(f"/proc/{sidecar.pid}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) < 64 * 1024


@pytest.mark.attack
async def test_sockets_where_others_could_put_theirs_are_not_served(start_sidecar: Any, short_directory: str) -> None:
    Path(short_directory).chmod(0o777)
    sidecar = start_sidecar()
    assert await asyncio.to_thread(sidecar.wait) == 3
    assert "is open to other users (mode 0777)" in sidecar.text()
