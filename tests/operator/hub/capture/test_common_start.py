"""The check that the ranks began with one step: a report → what is said of it, and how the capture ends."""

from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.report.report import Report, write_report
from fleetprof_api.report.start_skew import RankStart, StartSkew
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_operator.hub.planning.common_start import say_different_steps
from fleetprof_operator.hub.storage.report_head import ReportHead, read_head


def make_start(*steps: int | None, same: bool | None) -> StartSkew:
    ranks = [RankStart(rank=n, source=f"r{n}", start_ns=0, first_step=step) for n, step in enumerate(steps)]
    return StartSkew(ranks=ranks, same_first_iteration=same)


def make_report(start: StartSkew) -> bytes:
    # A title as hostile as its words allow: what is asked for stands behind it.
    report = Report(made_by="a test", made_unix_ns=1, title='{"start":1,"ranks":[', start=start, whole_traces=[3, 1])
    return write_report(report)


SAYS = "not the same iterations, because the ranks began with different steps"


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (make_start(17, 17, same=True), ""),
        (make_start(17, None, same=None), ""),
        (make_start(17, same=None), ""),
        (make_start(18, 17, 18, same=False), f"{SAYS}: 17 (rank 1), 18 (ranks 0, 2)"),
        (make_start(None, None, same=False), SAYS),  # told by the marks of the job's own profiler
        (make_start(*range(7), same=False),
         f"{SAYS}: 0 (rank 0), 1 (rank 1), 2 (rank 2), 3 (rank 3), 4 (rank 4), 2 more"),
        (make_start(*[5] * 12, 6, same=False),
         f"{SAYS}: 5 (ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and more), 6 (rank 12)"),
    ],
)  # fmt: skip
def test_which_rank_began_where(start: StartSkew, says: str) -> None:
    assert say_different_steps(start) == says


REPORT = make_report(make_start(18, 17, same=False))
START = make_start(18, 17, same=False)


@pytest.mark.parametrize(
    ("begin", "head"),
    [
        (REPORT, ReportHead(start=START, whole_traces=[3, 1])),
        (REPORT[: REPORT.index(b'"capture_cost"')], ReportHead(start=START, whole_traces=[3, 1])),  # the head is whole
        (msgspec.json.encode(msgspec.json.decode(REPORT)), ReportHead(start=START, whole_traces=[3, 1])),
        (REPORT[: REPORT.index(b"whole_traces")], ReportHead()),
        (b"no report", ReportHead()),
        (b"", ReportHead()),
        (b"{}", ReportHead()),
        (b'{"start":3}', ReportHead()),
        (b'{"start":' + b"[" * 100_000, ReportHead()),
    ],
)  # fmt: skip
def test_the_head_of_a_report(begin: bytes, head: ReportHead) -> None:
    assert read_head(begin) == head


@pytest.mark.parametrize(
    ("request_fields", "same", "reason"),
    [
        ({}, True, "Complete"),
        ({}, False, "PartiallyCaptured"),
        ({"window": {"durationMillis": 500}}, False, "Complete"),  # nobody said that it was to be one step
    ],
)
async def test_a_capture_from_different_steps_on_is_a_part_of_what_was_asked(
    ground: Any, kit: Any, request_fields: dict[str, Any], same: bool, reason: str
) -> None:
    async def analyze(order: AnalysisOrder) -> None:
        ground.store.put(
            keys.report_key(order.namespace, order.uid), make_report(make_start(18, 18 if same else 17, same=same))
        )

    ground.analyze = analyze
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(**request_fields), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", reason)
    assert kit.states(status) == {0: "UPLOADED", 1: "UPLOADED"}
    message = next(c.message for c in status.conditions if c.type == "Succeeded")
    assert ("17 (rank 1), 18 (rank 0)" in message) is (reason != "Complete")
