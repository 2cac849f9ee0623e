"""One rank of a real job records one iteration before the others, and is unharmed."""

import msgspec
import pytest
from fleetprof_api.ledger import CanaryVerdict, Ledger, RankState
from harness.training.local_system import Local, outcome

pytestmark = pytest.mark.torch


def test_the_first_capture_of_a_job_has_a_canary_and_the_second_has_none(local: Local) -> None:
    job = local.run("llama", ranks=2)
    job.await_steps()

    uid = local.submit("llama", iterations=4, canary="Auto", collect=["Shapes"])
    status = local.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)
    assert len(status.ranks) == 2
    canary = _ledger(local, uid).canary
    assert canary is not None
    assert canary.verdict is CanaryVerdict.UNHARMED, canary
    entry = canary.entry
    assert entry is not None
    assert (entry.rank, entry.state, entry.written_unix_ns > 0) == (0, RankState.WRITTEN, True)
    assert entry.time_cost is not None
    assert entry.time_cost.iteration_ns > 0
    assert entry.time_cost.iterations_after > 0
    assert entry.recording_cost is not None
    assert entry.recording_cost.events > 0
    estimate = _ledger(local, uid).estimate
    assert estimate is not None
    assert estimate.events_per_iteration == entry.recording_cost.events
    assert not [path for path in local.state.rglob("*") if f"{uid}-canary" in path.name]  # its trace is gone

    # What it cost is remembered by a hub that knows nothing but the store.
    local.kill_hub()
    local.up()
    job.await_steps()
    second = local.submit("llama", iterations=4, canary="Auto", collect=["Shapes"])
    assert outcome(local.await_end(second)) == ("True", "Complete")
    canary = _ledger(local, second).canary
    assert canary is not None
    assert (canary.verdict, canary.entry) == (CanaryVerdict.NOT_NEEDED, None), canary
    assert job.stop() == 0


def _ledger(local: Local, uid: str) -> Ledger:
    (path,) = [path for path in local.state.rglob("ledger.json") if path.parent.name == uid]
    return msgspec.json.decode(path.read_bytes(), type=Ledger)
