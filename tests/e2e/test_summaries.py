"""Summaries made beside real training: the report is whole, and the traces stay where they were taken."""

import pytest
from harness.training.local_job import LocalJob
from harness.training.local_system import Local, outcome, states

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def llama(hub: Local) -> LocalJob:
    """A job of three ranks that the next tests capture, and the last of them ends."""
    return hub.run_shared("llama", ranks=3)


def stored(hub: Local, uid: str) -> set[str]:
    (folder,) = [path.parent for path in hub.state.rglob("ledger.json") if path.parent.name == uid]
    return {str(path.relative_to(folder)) for path in folder.rglob("*.gz")}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("traces", ["Summary", "Auto"])
def test_a_report_of_summaries(hub: Local, llama: LocalJob, traces: str) -> None:
    # Summaries are made when nothing else wants the CPU, which may be seldom where tests run side by side.
    uid = hub.submit("llama", iterations=4, traces=traces, deadline_s=400)
    status = hub.await_end(uid, 500)

    assert outcome(status) == ("True", "Complete"), str(status)
    assert states(status) == dict.fromkeys(range(3), "UPLOADED")
    report = hub.report(uid)
    assert report.problems == []
    # Kineto ends a window from a thread of its own, which gets no core at once where tests run side by side.
    window = list(range(status.first_step, status.first_step + 4))
    assert [[one.index for one in rank.iterations][:4] for rank in report.ranks] == [window] * 3
    for rank in report.ranks:
        time = rank.time_ns
        assert time.span == time.compute + time.exposed_communication + time.exposed_memory + time.idle > 0
    files = stored(hub, uid)
    assert {f"ranks/{rank}/summary.json.gz" for rank in range(3)} <= files
    kept = {name for name in files if name.endswith("trace.json.gz")}
    if traces == "Summary":
        assert kept == set()
    else:
        assert kept == {f"ranks/{rank}/trace.json.gz" for rank in report.whole_traces}
        assert kept, "no rank's trace was kept"


def test_the_training_ended_as_if_nobody_had_looked(hub: Local, llama: LocalJob) -> None:
    assert llama.stop() == 0
    assert not list((hub.state / "runs").glob("*/spool/files/*")), "something stayed in the spool"
