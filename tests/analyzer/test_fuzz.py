"""Damaged traces: whatever is in a file, there is a report, and what was wrong stands in it. `make fuzz` runs many."""

import json
import os
import resource
from decimal import Decimal
from io import BytesIO

import pytest
from fleetprof_analyzer.analysis import summarise_file
from fleetprof_analyzer.assembly import assemble
from fleetprof_analyzer.iterations import Asked
from fleetprof_analyzer.page import render_page
from fleetprof_analyzer.problems import Kind, Problems
from fleetprof_analyzer.stored_summary import pack_summary, unpack_summary
from fleetprof_analyzer.summary import merge
from fleetprof_analyzer.terminal import render_text
from fleetprof_api.report import json_schema, read_report, write_report
from jsonschema import Draft202012Validator
from mutated_traces import mutate
from planted_traces import plant

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
            lambda data=data: BytesIO(data),
            "t",
            samples=None,
            assigned=0,
            asked=Asked(),
            problems=problems,  # type: ignore[misc]
        )
        assert Kind.ANALYZER_FAULT not in [problem.kind for problem in summary.problems], (seed, summary.problems)
        again = unpack_summary(pack_summary(summary, trace_bytes=1, samples_bytes=1), 0)
        report = assemble(merge([[summary], [again]]), title="t", made_unix_ns=0)
        assert len(report.ranks) <= 1, seed
        if seed % 10 == 0:
            validator.validate(json.loads(write_report(report)))
            assert read_report(write_report(report)) == report
            render_page(report)
            render_text(report)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KIB
