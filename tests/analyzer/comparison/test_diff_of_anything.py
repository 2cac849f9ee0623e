"""Whatever two reports hold, comparing them ends in a comparison or in reasons: never in an error."""

import json

from fleetprof_analyzer.assembly.diff import compare
from fleetprof_analyzer.views.terminal.diff import render_diff
from fleetprof_api.report.capture_cost import CaptureCost, Phase
from fleetprof_api.report.diff import json_schema, write_diff
from fleetprof_api.report.report import Iteration, Rank, Report, TimeBreakdown, read_report, write_report
from fleetprof_api.report.report_tables import CommunicationStatistics, KernelStatistics, Stages, StageTime
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

LENGTHS = st.one_of(st.integers(0, 3), st.integers(0, 10**9), st.just(8 * 10**18))
MAYBE_LENGTH = st.one_of(st.none(), LENGTHS)
TIMES = st.builds(TimeBreakdown, span=LENGTHS, compute=LENGTHS, idle=LENGTHS)
RANKS = st.builds(
    Rank,
    rank=st.one_of(st.none(), st.integers(0, 3)),
    source=st.just("r.json"),
    kind=st.sampled_from(["gpu", "gpu", "cpu"]),
    time_basis=st.just("device"),
    time_ns=TIMES,
    index_from=st.sampled_from(["agent", "profiler_step", "position", "none"]),
    iterations=st.lists(
        st.builds(
            Iteration,
            index=st.integers(0, 8),
            start_ns=st.just(0),
            duration_ns=LENGTHS,
            complete=st.sampled_from([True, True, True, None, False]),
            time_ns=st.one_of(st.none(), TIMES),
            energy_mj=MAYBE_LENGTH,
        ),
        max_size=7,
    ),
    stages=st.one_of(
        st.none(),
        st.builds(
            Stages,
            stages=st.lists(
                st.builds(
                    StageTime,
                    stage=st.sampled_from(["forward", "loss"]),
                    time_ns=LENGTHS,
                    iterations_ns=st.lists(LENGTHS, max_size=7),
                ),
                max_size=2,
            ),
        ),
    ),
    world_size=st.one_of(st.none(), st.integers(1, 2)),
    device_name=st.sampled_from(["", "H100"]),
)
KERNELS = st.builds(
    KernelStatistics, name=st.sampled_from(["gemm", "relu", "(other)"]), work_class=st.just("compute"),
    count=st.integers(0, 5), total_ns=LENGTHS, mean_ns=LENGTHS, min_ns=LENGTHS, max_ns=LENGTHS, deviation_ns=LENGTHS,
    p50_ns=LENGTHS, p90_ns=LENGTHS, p99_ns=LENGTHS, ranks=st.integers(0, 3),
)  # fmt: skip
COLLECTIVES = st.builds(
    CommunicationStatistics, kind=st.sampled_from(["all_reduce", ""]), group=st.sampled_from(["", "dp"]),
    count=st.integers(0, 5), total_ns=LENGTHS, min_ns=LENGTHS, overlapped_ns=LENGTHS, ranks=st.integers(0, 3),
)  # fmt: skip
PHASES = st.builds(
    Phase,
    iterations=st.integers(0, 30),
    median_ns=MAYBE_LENGTH,
    median_low_ns=MAYBE_LENGTH,
    median_high_ns=MAYBE_LENGTH,
)
REPORTS = st.builds(
    Report,
    ranks=st.lists(RANKS, max_size=3),
    kernels=st.lists(KERNELS, max_size=3),
    communication=st.lists(COLLECTIVES, max_size=3),
    capture_cost=st.one_of(st.none(), st.builds(CaptureCost, before=PHASES, during=PHASES, after=PHASES)),
)
SCHEMA = Draft202012Validator(json_schema())


@settings(max_examples=80, deadline=None)
@given(REPORTS, REPORTS)
def test_any_two_reports(before: Report, after: Report) -> None:
    before = read_report(write_report(before))
    diff = compare(before, after)
    assert diff.comparable is not bool(diff.reasons)
    SCHEMA.validate(json.loads(write_diff(diff)))
    assert render_diff(diff, 80).endswith("\n")


@settings(max_examples=30, deadline=None)
@given(REPORTS)
def test_no_report_differs_from_itself(report: Report) -> None:
    diff = compare(report, report)
    assert diff.verdict in ("not_shown", "not_judged")
    assert {row.verdict for row in diff.measures} <= {"not_shown", "not_judged"}
    assert {row.verdict for row in diff.kernels} <= {"not_shown", "not_judged"}
