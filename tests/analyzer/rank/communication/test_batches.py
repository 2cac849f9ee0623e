"""Sends and receives that are launched together: one kernel, of which the host's rows tell the parts."""

import io
from dataclasses import replace
from typing import Any

import pytest
from fleetprof_analyzer.rank.communication.kinds import kind_of
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import LoopShape, SimulatedFault
from harness.traces.straggler_sections import operations_of_traces

# Two stages and two microbatches, in an iteration.
EXPECTED = {
    0: [("send", 1), ("send", 1), ("receive", 1), ("receive", 1)],
    1: [("receive", 0), ("send", 0), ("receive", 0), ("send", 0)],
}


RECORDINGS = [
    {"names_first": True}, {"names_first": False}, {"tells": "group"}, {"tells": "host", "names_first": True},
    {"synchronizes": False}, {"launches": False}, {"launches": False, "synchronizes": False, "names_first": True},
]  # fmt: skip


@pytest.mark.parametrize("kernel", [b"ncclDevKernel_SendRecv", b"ncclDevKernel_Generic_1"])  # RCCL has one for all
@pytest.mark.parametrize("recording", RECORDINGS)
def test_parts_of_a_batch_are_told_apart(recording: dict[str, Any], kernel: bytes) -> None:
    shape = LoopShape("batched", pp=2, microbatches=2, layers=1, iterations=3, asks_loss=False)
    job = EventJob(replace(shape, **recording), SimulatedFault(), 1)
    traces = [
        read_trace(io.BytesIO(one.replace(b"ncclDevKernel_SendRecv", kernel)), f"rank{number}.json", Problems())
        for number, one in enumerate(job.documents())
    ]
    for one in operations_of_traces(traces):
        columns = one.columns
        for number in range(3):
            here = [at for at in range(len(one)) if columns.iteration[at] == number and columns.peer[at] >= 0]
            assert one.rank is not None
            assert [(KINDS[columns.kind[at]], int(columns.peer[at])) for at in here] == EXPECTED[one.rank]
            starts = [int(columns.start_ns[at]) for at in here]
            assert [starts.count(start) for start in starts] == [1, 2, 2, 1]


@pytest.mark.parametrize(
    ("name", "kind"), [("send", "send"), ("recv", "receive"), ("batch_isend_irecv", "send_receive")]
)
def test_a_row_of_a_whole_batch_is_none_of_its_parts(name: str, kind: str) -> None:
    assert KINDS[kind_of(name, "ncclDevKernel_SendRecv")] == kind
