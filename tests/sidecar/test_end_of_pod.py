"""The pod ends, and its volume with it: what is not stored by then is said to be lost."""

import time
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import RankState, Reason
from fleetprof_sidecar.capture.events import PodEnded
from fleetprof_sidecar.capture.machine import advance
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms

TERMS = Terms(capture_id="c", process_id="p", rank=0, give_up_unix_ns=10**12)


@pytest.mark.parametrize(
    ("state", "written_unix_ns", "words"),
    [
        (RankState.ASKED, 0, "its trace was not complete"),
        (RankState.STARTED, 0, "its trace was not complete"),
        (RankState.WRITTEN, 5, "was not uploaded in time"),
    ],
)
def test_a_capture_that_is_not_done_is_lost_with_the_pod(state: RankState, written_unix_ns: int, words: str) -> None:
    capture = ProcessCapture(terms=TERMS, state=state, written_unix_ns=written_unix_ns)
    ended, _ = advance(capture, PodEnded(7))
    assert (ended.state, ended.reason, ended.failed_unix_ns) == (RankState.FAILED, Reason.POD_ENDED, 7)
    assert words in ended.message
    assert advance(ended, PodEnded(8))[0] == ended


def test_a_capture_that_is_done_stays_done() -> None:
    capture = ProcessCapture(terms=TERMS, state=RankState.UPLOADED, uploaded_unix_ns=5)
    assert advance(capture, PodEnded(7))[0] == capture


async def test_the_hub_hears_what_is_lost_and_the_pods_labels(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Any, tmp_path: Path
) -> None:
    """SIGTERM with a store that takes nothing: the last word is the reason, and the process leaves within its bound."""
    (tmp_path / "labels").write_text('app="llama"\n')
    hub.grants = False
    sidecar = start_sidecar("--ends-with-pod", "--grace-seconds", "0.5", "--labels-file", str(tmp_path / "labels"))
    start_trainers("--ranks", "1", "--step-ms", "20", "--poll-ms", "200")
    await await_that(lambda: any(p.role == hub_pb2.TRAINER and p.HasField("step") for p in hub.processes()))
    assert dict(hub.hellos[0].identity.labels) == {"app": "llama"}
    (process,) = hub.processes()
    now = time.time_ns()
    hub.send(
        arm=hub_pb2.Arm(
            capture_id="cap-1",
            orders=[hub_pb2.Order(process_id=process.process_id, rank=0)],
            window=hub_pb2.Window(iterations=2),
            first_step=process.step.step + 60,
            deliver_until_unix_ns=now + 20 * 10**9,
            give_up_unix_ns=now + 60 * 10**9,
        )
    )
    await await_that(lambda: hub.state("cap-1") == "WRITTEN")
    assert await sidecar.leave() == 0
    last = hub.last("cap-1")
    assert (hub_pb2.RankState.Name(last.state), last.reason) == ("FAILED", "PodEnded")
    assert "was not uploaded in time" in last.message
