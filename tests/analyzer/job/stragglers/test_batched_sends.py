"""Pipelines that launch sends and receives in batches, and jobs of which order alone says what belongs together."""

import io

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from harness.traces.simulated.cases import CAUSES, draw_simulated
from harness.traces.straggler_sections import stragglers_of_traces

GAIN_OFF = 0.03
FAULTS = [
    ("batched", "slow_host", 310005), ("batched", "data_loader", 310002),
    # A kernel that exchanges with two ranks lasts as long as the later of them takes.
    ("interleaved", "slow_gpu", 2),
    # Devices that are iterations behind their hosts.
    ("unlaunched_fsdp", "slow_gpu", 2), ("unlaunched_batched", "slow_gpu", 2),
    ("unnumbered_hsdp", "slow_gpu", 2),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "kind", "seed"), FAULTS)
def test_the_fault_is_found_with_its_cause_and_worth(layout: str, kind: str, seed: int) -> None:
    case = draw_simulated(layout, kind, seed)
    found = stragglers_of_traces(case.job.traces())
    assert [(one.rank, one.cause) for one in found.ranks] == [(case.job.fault.rank, CAUSES[kind])]
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)
    assert found.unmatched == 0


@pytest.mark.parametrize(("layout", "seed"), [("batched", 2), ("unlaunched_pipeline", 2)])
def test_nobody_is_named_in_a_healthy_job(layout: str, seed: int) -> None:
    found = stragglers_of_traces(draw_simulated(layout, "none", seed).job.traces())
    assert (found.verdict, found.ranks, found.slow_links) == ("nobody", [], [])


def test_lost_rows_let_no_ranks_wait_in_a_circle() -> None:
    case = draw_simulated("unnumbered_tp", "slow_gpu", 1)
    lost, traces = np.random.default_rng(1), []
    for number, data in enumerate(case.job.documents()):
        document = msgspec.json.decode(data)
        document["traceEvents"] = [
            row for row in document["traceEvents"] if "ncclDev" not in row["name"] or lost.random() > 0.01
        ]
        traces.append(read_trace(io.BytesIO(msgspec.json.encode(document)), f"rank{number}.json", Problems()))
    found = stragglers_of_traces(traces)
    assert [one.rank for one in found.ranks] == [case.job.fault.rank]
    assert found.gain == pytest.approx(case.gain, abs=GAIN_OFF)
