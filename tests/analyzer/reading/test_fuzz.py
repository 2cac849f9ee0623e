"""Damaged traces: whatever is in a file, there is a report, and what was wrong stands in it. `make fuzz` runs many."""

import json
import os
import resource
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.capture.folder import summarise_file
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.stored_summary import pack_summary, unpack_summary
from fleetprof_analyzer.rank.summary import merge
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.report.report import json_schema, read_report, write_report
from harness.reference.mutated_traces import mutate
from harness.traces.planted.traces import plant
from jsonschema import Draft202012Validator

CASES = int(os.environ.get("FLEETPROF_FUZZ_CASES", "200"))
BATCH = 50
MOST_GROWTH_KIB = 300 << 10


@pytest.mark.parametrize("batch", range(-(-CASES // BATCH)))
def test_damaged_traces_end_in_a_report(batch: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    document = json.loads(plant(batch, iterations=3, segments=3).text(), parse_float=Decimal)
    validator = Draft202012Validator(json_schema())
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        data, problems = mutate(seed, document), Problems()
        summary = summarise_file(
            partial(BytesIO, data), "t", samples=None, assigned=0, terms=RecordingTerms(), problems=problems
        )
        assert ProblemKind.ANALYZER_FAULT not in [problem.kind for problem in summary.problems], (
            seed,
            summary.problems,
        )
        again = unpack_summary(pack_summary(summary, trace_bytes=1, samples_bytes=1), 0)
        report = assemble(merge([[again], [again]]), title="t", made_unix_ns=0)
        assert len(report.ranks) <= 1, seed
        if seed % 10 == 0:
            validator.validate(json.loads(write_report(report)))
            assert read_report(write_report(report)) == report
            render_page(report)
            render_text(report)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KIB


MANY = 20_000
STEP = {"Sequence number": 1}


def row(name: str, category: str, start: int, length: int, thread: int, **args: Any) -> dict[str, Any]:
    pid = 0 if category in ("kernel", "gpu_memcpy") else 1
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": thread,
        "ts": start,
        "dur": length,
        "args": args,
    }


SHAPES: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "each kernel a name": lambda n: [row(f"k{n}", "kernel", 2 * n, 1, 7, device=0, stream=7)],
    "each copy a name": lambda n: [row(f"Memcpy HtoD {n}", "gpu_memcpy", 2 * n, 1, 7, device=0, stream=7, bytes=4)],
    "each collective its own": lambda n: [
        row("ncclDevKernel_AllReduce", "kernel", n, 1, 7, device=0, stream=7,
            **{"Collective name": "allreduce", "In msg nelems": n, "dtype": "Float", "Group size": 8})
    ],
    "each row a stream": lambda n: [
        row("k", "kernel", 4 * n, 1, n, device=0, stream=n, correlation=n),
        row("cudaLaunchKernel", "cuda_runtime", 4 * n - 2, 1, 1, correlation=n),
    ],
    "each launch a thread": lambda n: [
        row("k", "kernel", 4 * n, 1, 7, device=0, stream=7, correlation=n), row("aten::mm", "cpu_op", 4 * n - 3, 2, n),
        row("cudaLaunchKernel", "cuda_runtime", 4 * n - 2, 1, n, correlation=n),
    ],
    "each row a device": lambda n: [
        row("k", "kernel", 4 * n, 1, 7, device=n, stream=7, correlation=n),
        row("cudaLaunchKernel", "cuda_runtime", 4 * n - 2, 1, n % 50, correlation=n),
    ],
    "a backward pass each": lambda n: [
        row("aten::mm", "cpu_op", 10 * n, 3, 1, **STEP), row("MmBackward0", "cpu_op", 10 * n + 4, 3, 1, **STEP),
        row("aten::add_", "cpu_op", 10 * n + 8, 1, 1), row("ProfilerStep#1", "user_annotation", 0, 10 * MANY, 1),
    ],
    "a step each": lambda n: [row(f"ProfilerStep#{n}", "user_annotation", 10 * n, 10, 1),
                              row("aten::mm", "cpu_op", 10 * n, 3, 1, **STEP)],
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_no_job_has_take_no_longer_than_others(shape: str) -> None:
    data = json.dumps({"traceEvents": [event for n in range(MANY) for event in SHAPES[shape](n)]}).encode()
    problems = Problems()
    summary = summarise_file(
        lambda: BytesIO(data), "t", samples=None, assigned=0, terms=RecordingTerms(), problems=problems
    )
    assert ProblemKind.ANALYZER_FAULT not in [problem.kind for problem in summary.problems], summary.problems
    assert summary.rank is not None
    pack_summary(summary, trace_bytes=1, samples_bytes=1)
