"""The sidecar as a process, between a scripted hub and simulated trainers: every capture ends, no trace is lost."""

import gzip
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_api.samples import RankSamples
from harness.sidecar.armed_captures import NS, Await, arm, known_trainers, reached
from msgspec.json import decode


async def test_every_rank_of_a_capture_is_uploaded_with_its_samples_and_released(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, short_directory: str, tmp_path: Path
) -> None:
    sidecar = start_sidecar("--workload", "batch/v1/Job/demo", "--label", "app=demo", "--namespace", "team")
    start_trainers("--ranks", "2", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 2))
    identity = hub.hellos[0].identity
    assert (identity.namespace, identity.workload.name, identity.labels["app"]) == ("team", "demo", "demo")
    assert hub.tokens[0] == "Bearer the-token"

    first_step = arm(hub, sample_interval_ns=50_000_000)
    for rank in (0, 1):
        await await_that(reached(hub, "cap-1", rank, "UPLOADED", "FAILED"))
        event = hub.last("cap-1", rank)
        assert hub_pb2.RankState.Name(event.state) == "UPLOADED", event.message
        assert 0 < event.asked_unix_ns <= event.armed_unix_ns <= event.started_unix_ns <= event.written_unix_ns
        assert event.compressed_bytes < event.trace_bytes
        trace = json.loads(gzip.decompress(hub.uploads["cap-1", event.process_id, hub_pb2.TRACE]))
        assert trace["trace_id"] == f"cap-1-r{rank}"
        samples = decode(gzip.decompress(hub.uploads["cap-1", event.process_id, hub_pb2.SAMPLES]), type=RankSamples)
        assert samples.rank == rank
        assert samples.agent
        assert set(range(first_step, first_step + 5)) <= set(samples.steps.step)
        assert len(samples.host.at_unix_ns) > 1
        assert event.message == ""
    order = [(e.rank, hub_pb2.RankState.Name(e.state)) for e in hub.events]
    for rank in (0, 1):
        states = list(dict.fromkeys(state for r, state in order if r == rank))
        # What waits to be sent is replaced by what is newer, so a busy machine may leave states out.
        assert states == [state for state in ("ASKED", "ARMED", "STARTED", "WRITTEN", "UPLOADED") if state in states]
        assert states[-1] == "UPLOADED"
    assert list((tmp_path / "spool" / "files").iterdir()) == []
    assert list((Path(short_directory) / "traces").glob("*.json")) == []

    hub.send(release=hub_pb2.Release(capture_id="cap-1"))
    await await_that(lambda: not list((tmp_path / "spool" / "journal").iterdir()))
    assert await sidecar.leave() == 0
    assert not [path for path in Path(short_directory).iterdir() if path.name in ("dynolog", "fleetprof")]


@pytest.mark.parametrize("state", ["ASKED", "ARMED", "STARTED", "WRITTEN"])
async def test_a_sidecar_killed_in_any_state_loses_no_trace(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, state: str
) -> None:
    sidecar = start_sidecar()
    start_trainers("--ranks", "2", "--step-ms", "20", "--poll-ms", "500")
    await await_that(known_trainers(hub, 2))
    hub.grants = False
    arm(hub, lead=300)
    await await_that(lambda: all(hub.state("cap-1", rank) == state for rank in (0, 1)))
    sidecar.end(signal.SIGKILL)
    hub.grants = True
    start_sidecar()
    for rank in (0, 1):
        await await_that(reached(hub, "cap-1", rank, "UPLOADED", "FAILED"))
        event = hub.last("cap-1", rank)
        assert hub_pb2.RankState.Name(event.state) == "UPLOADED", event.message
        trace = json.loads(gzip.decompress(hub.uploads["cap-1", event.process_id, hub_pb2.TRACE]))
        assert trace["trace_id"] == f"cap-1-r{rank}"
    assert hub.hellos[0].sidecar_id == hub.hellos[-1].sidecar_id
    assert {e.capture_id for e in hub.hellos[-1].held} == {"cap-1"}


async def test_a_hub_killed_in_the_middle_is_told_the_state_and_the_capture_ends(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, short_directory: str, tmp_path: Path
) -> None:
    start_sidecar()
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 1))
    arm(hub)
    await await_that(reached(hub, "cap-1", 0, "ARMED"))
    await hub.stop()
    hub.events.clear()
    await await_that(lambda: list((tmp_path / "spool/files").glob("*.trace.json.gz")))
    await await_that(lambda: not list((Path(short_directory) / "traces").glob("*.json")))
    await hub.start()
    await await_that(reached(hub, "cap-1", 0, "UPLOADED"))
    assert hub.hellos[-1].held[0].state == hub_pb2.WRITTEN


async def test_a_store_that_is_away_gets_the_trace_when_it_is_back(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, make_http_store: Any
) -> None:
    sidecar = start_sidecar("--grace-seconds", "0")
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 1))
    port = hub.store.port
    hub.store.stop()
    arm(hub)
    # Two requests: the first grant was used up against the closed port.
    await await_that(lambda: len(hub.requests) >= 2)
    assert hub.state("cap-1") == "WRITTEN"
    assert await sidecar.leave() == 0
    start_sidecar()
    hub.store = make_http_store(port)
    await await_that(reached(hub, "cap-1", 0, "UPLOADED"), 60)


async def test_a_verdict_against_the_file_begins_the_upload_anew_or_fails_the_rank(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await
) -> None:
    start_sidecar()
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 1))
    hub.verdicts = [hub_pb2.UploadVerdict(message="checksum", retry_after_ns=1)]
    arm(hub)
    await await_that(reached(hub, "cap-1", 0, "UPLOADED"))
    hub.verdicts = [hub_pb2.UploadVerdict(message="the bucket is gone")]
    arm(hub, "cap-2")
    await await_that(reached(hub, "cap-2", 0, "FAILED"))
    assert hub.last("cap-2").reason == "UploadFailed"
    assert "the bucket is gone" in hub.last("cap-2").message


@pytest.mark.parametrize(
    ("agent", "state"),
    [(True, "ASKED"), (True, "ARMED"), (True, "STARTED"), (True, "WRITTEN"), (False, "ARMED"), (False, "STARTED")],
)
async def test_cancel_in_any_state_ends_the_rank_and_leaves_nothing(
    hub: Any,
    start_sidecar: Any,
    start_trainers: Any,
    await_that: Await,
    short_directory: str,
    tmp_path: Path,
    state: str,
    agent: bool,
) -> None:
    start_sidecar()
    poll = "1500" if state == "ASKED" else "100"
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", poll, *([] if agent else ["--no-agent"]))
    hub.grants = False
    if agent:
        await await_that(known_trainers(hub, 1))
        arm(hub, iterations=100, lead=150)
    else:
        # Until its role is settled nobody can tell it from a launcher.
        await await_that(lambda: any(time.time_ns() - p.first_seen_unix_ns > 11 * NS for p in hub.processes()))
        now = time.time_ns()
        window = hub_pb2.Window(duration_ns=2 * NS)
        order = hub_pb2.Order(process_id=hub.processes()[0].process_id, rank=0)
        wanted = hub_pb2.Arm(capture_id="cap-1", orders=[order], window=window, start_unix_ns=now + 4 * NS)
        wanted.deliver_until_unix_ns, wanted.give_up_unix_ns = now + 9 * NS, now + 60 * NS
        hub.send(arm=wanted)
    await await_that(reached(hub, "cap-1", 0, state))
    hub.send(cancel=hub_pb2.Cancel(capture_id="cap-1", reason="Cancelled", message="by the user"))
    await await_that(reached(hub, "cap-1", 0, "FAILED"))
    event = hub.last("cap-1")
    assert event.reason == "Cancelled"
    assert "by the user" in event.message
    hub.send(cancel=hub_pb2.Cancel(capture_id="cap-1", reason="Internal", message="again"))
    hub.send(release=hub_pb2.Release(capture_id="cap-1"))
    await await_that(lambda: not list((tmp_path / "spool/journal").iterdir()))
    assert list((tmp_path / "spool/files").iterdir()) == []
    # The window of a trace that cannot be stopped ends, and what it leaves is taken away.
    traces = Path(short_directory) / "traces"
    time.sleep(1)
    await await_that(lambda: not list(traces.glob("*.json")) and not list(traces.glob("*.tmp")), 60)
    assert hub.last("cap-1").reason == "Cancelled"


async def test_two_captures_of_the_same_rank_do_not_mix(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await
) -> None:
    start_sidecar()
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 1))
    arm(hub)
    arm(hub, "cap-2")
    await await_that(reached(hub, "cap-2", 0, "FAILED"))
    assert hub.last("cap-2").reason == "Busy"
    assert "cap-1" in hub.last("cap-2").message
    arm(hub)  # the same again changes nothing
    await await_that(reached(hub, "cap-1", 0, "UPLOADED"))
