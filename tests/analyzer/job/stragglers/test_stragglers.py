"""Planted faults are found with rank and cause, and where nobody is at fault nobody is named. The bench has more."""

import io
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.capture.folder import summarise_file
from fleetprof_analyzer.job.stragglers.replay.alignment import align_clocks, ends_together
from fleetprof_analyzer.job.stragglers.replay.matching import match
from fleetprof_analyzer.rank.communication.operations import RankOperations, UnreadableOperations, decode, encode
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import COLUMNS, Category, Rows, Trace
from fleetprof_analyzer.words.straggler_list import list_stragglers
from fleetprof_api.report.stragglers import Stragglers
from harness.traces.planted.faults import CAUSES, FAULTS, NO_FAULTS, FaultCase, draw, operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, json_of, samples_of, traces_of
from harness.traces.straggler_sections import stragglers_of, stragglers_of_summaries

SHAPES = (
    JobShape(dp=8, layers=3), JobShape(dp=4, tp=4, layers=2), JobShape(dp=4, pp=4, microbatches=4, layers=2),
    JobShape(dp=8, sharded=True, layers=3),
)  # fmt: skip
CLEAR = Clarity()


def found_in(operations: list[RankOperations]) -> Stragglers:
    found = stragglers_of(operations)
    assert found is not None
    return found


def telling_case(kind: str, number: int) -> tuple[FaultCase, list[Trace], PlantedJob]:
    """The number-th case from a fixed seed on whose fault traces can tell and that costs enough to be told."""
    telling = (
        drawn
        for drawn in (draw(kind, seed, SHAPES) for seed in itertools.count(10))
        if drawn[0].identifiable and drawn[0].gain >= 0.015
    )
    return next(itertools.islice(telling, number, None))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_found_with_its_rank_and_cause(kind: str, number: int) -> None:
    case, traces, job = telling_case(kind, number)
    found = found_in(operations_of(job, traces))
    assert found.ranks[0].rank in case.culprits
    assert found.ranks[0].cause == CAUSES[kind]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", NO_FAULTS)
def test_where_nobody_is_at_fault_nobody_is_named(kind: str, seed: int) -> None:
    _, traces, job = draw(kind, seed, SHAPES)
    found = found_in(operations_of(job, traces))
    assert (found.ranks, found.slow_links) == ([], [])
    assert found.verdict in ("nobody", "moving_imbalance")


def slow_device(shape: JobShape, rank: int, factor: float = 1.3) -> PlantedFault:
    device = np.ones((shape.ranks, shape.iterations))
    device[rank] = factor
    return PlantedFault("slow_gpu", rank, device=device)


def test_the_gain_is_what_the_job_without_the_fault_is_shorter_by() -> None:
    shape = JobShape(dp=8, layers=3)
    slow, healthy = PlantedJob(shape, slow_device(shape, 5), 1), PlantedJob(shape, PlantedFault(), 1)
    (first,) = found_in(operations_of(slow, traces_of(slow, CLEAR, 1))).ranks
    assert first.rank == 5
    assert first.gain == pytest.approx(1 - healthy.length_ns / slow.length_ns, abs=0.015)
    assert first.lateness_ns == pytest.approx((slow.length_ns - healthy.length_ns) / shape.iterations, rel=0.1)


@pytest.mark.parametrize("asks_loss", [True, False], ids=["waits for its device", "runs ahead of it"])
@pytest.mark.parametrize("kind", ["slow_host", "slow_gpu", "none"])
def test_who_waits_in_a_barrier_of_the_hosts_is_not_blamed(kind: str, asks_loss: bool) -> None:
    """Their devices are idle and their hosts silent, and still it is rank 3 that they wait for."""
    shape = JobShape(dp=8, layers=4, meets_on_host=True, asks_loss=asks_loss, launch_share=0.8)
    fault = slow_device(shape, 3)
    if kind == "slow_host":
        fault = PlantedFault(kind, 3, host=slow_device(shape, 3, 2.0).device)
    slow = PlantedJob(shape, PlantedFault() if kind == "none" else fault, 1)
    found = found_in(operations_of(slow, traces_of(slow, CLEAR, 1)))
    assert [(one.rank, one.cause) for one in found.ranks] == ([] if kind == "none" else [(3, CAUSES[kind])])
    gain = 1 - PlantedJob(shape, PlantedFault(), 1).length_ns / slow.length_ns
    assert found.gain == pytest.approx(gain, abs=0.06)


def test_two_slow_ranks_do_not_hide_each_other() -> None:
    shape = JobShape(dp=8, layers=3)
    fault = slow_device(shape, 5)
    assert fault.device is not None
    fault.device[2] = 1.2
    job = PlantedJob(shape, fault, 12)
    found = found_in(operations_of(job, traces_of(job, CLEAR, 12)))
    assert [one.rank for one in found.ranks] == [5, 2]
    assert found.ranks[1].gain < 0.01 < found.ranks[1].gain_alone
    assert "if the other late ranks were on time" in "\n".join(list_stragglers(found, 120))


def test_clocks_change_nothing() -> None:
    shape = JobShape(dp=4, tp=2, layers=2)
    job = PlantedJob(shape, slow_device(shape, 3), 2)
    still, skewed = (
        found_in(operations_of(job, traces_of(job, Clarity(skew_s=skew, drift_ppm=0), 2))) for skew in (0.0, 3600.0)
    )
    assert still.ranks[0].rank == 3
    assert skewed.ranks[0].lateness_ns == pytest.approx(still.ranks[0].lateness_ns, rel=1e-4)
    assert [one.gain for one in skewed.ranks] == pytest.approx([one.gain for one in still.ranks], abs=1e-4)


def test_the_clocks_of_a_merged_trace_are_put_onto_one() -> None:
    job = PlantedJob(JobShape(dp=8, layers=3), PlantedFault(), 3)
    operations = operations_of(job, traces_of(job, Clarity(skew_s=5, drift_ppm=0), 3))
    aligned = align_clocks(match(operations))
    assert aligned.aligned.all()
    assert aligned.residual_most_ns <= 2
    true = [one.columns.start_ns[0] for one in operations_of(job, traces_of(job, Clarity(skew_s=0, drift_ppm=0), 3))]
    moved = [one.columns.start_ns[0] + o for one, o in zip(operations, aligned.offset_ns, strict=True)]
    shift = moved[0] - true[0]
    assert [m - t - shift for m, t in zip(moved, true, strict=True)] == pytest.approx([0] * 8, abs=2)


def test_a_rank_that_is_given_more_work_throughout_is_named_for_it() -> None:
    shape = JobShape(dp=8, layers=3)
    lengths = np.ones((8, 8, 1))
    lengths[3] = 1.3
    job = PlantedJob(shape, PlantedFault("more_work", lengths=lengths), 11)
    found = found_in(operations_of(job, traces_of(job, CLEAR, 11)))
    assert [(one.rank, one.cause) for one in found.ranks] == [(3, "unequal_work")]
    (evidence,) = found.ranks[0].evidence
    assert (evidence.measure, evidence.usual) == ("what its kernels were launched for, at the peers' pace", 100)
    assert evidence.value == pytest.approx(126, abs=1)  # its optimizer has as much to do as elsewhere
    assert found.clocks is not None
    assert found.clocks.residual_median_ns < 20_000  # the planted clocks drift by some µs over the window
    assert found.clocks.unaligned == []


def test_json_and_columns_say_the_same() -> None:
    shape = JobShape(dp=2, tp=2, layers=2, iterations=4)
    job = PlantedJob(shape, slow_device(shape, 2), 4)
    traces = traces_of(job, CLEAR, 4)
    summaries = []
    for trace in traces:
        text = json_of(trace).encode()
        summary = summarise_file(
            lambda text=text: io.BytesIO(text),  # type: ignore[misc]
            trace.source,
            samples=samples_of(job, trace),
            assigned=None,
            terms=RecordingTerms(),
            problems=Problems(),
        )
        assert summary.problems == []
        summaries.append((summary.rank_number, summary.operations, summary.operations_bytes))
    assert stragglers_of_summaries(summaries) == found_in(operations_of(job, traces))


def test_traces_without_group_metadata_are_matched_by_order_when_all_ranks_are_one_group() -> None:
    shape = JobShape(dp=8, layers=3)
    job = PlantedJob(shape, slow_device(shape, 6), 5)
    found = found_in(operations_of(job, traces_of(job, Clarity(groups=False), 5)))
    assert found.matched_by == "order, all ranks as one group"
    assert [one.rank for one in found.ranks] == [6]


def told_by_the_host(trace: Trace) -> Trace:
    """As older PyTorch writes it: kernels say nothing, the host's `record_param_comms` around their launch does."""
    rows = trace.rows
    kernels = np.flatnonzero(rows.collective >= 0)
    launches = np.flatnonzero(rows.category == Category.RUNTIME)
    by_correlation = dict(zip(rows.correlation[launches].tolist(), launches.tolist(), strict=True))
    around = rows.take(np.array([by_correlation[number] for number in rows.correlation[kernels].tolist()]))
    operators = replace(
        around, category=np.full(len(kernels), Category.OPERATOR, np.int8),
        name=np.full(len(kernels), len(trace.names), np.int32), collective=rows.collective[kernels],
        start_ns=around.start_ns - 1000, duration_ns=around.duration_ns + 2000,
    )  # fmt: skip
    silent = replace(rows, collective=np.full(len(rows), -1, np.int32))
    both = Rows(*(np.concatenate((getattr(silent, column), getattr(operators, column))) for column in COLUMNS))
    return replace(trace, rows=both, names=[*trace.names, "record_param_comms"])


def test_the_host_may_say_what_the_kernels_do_not() -> None:
    shape = JobShape(dp=4, tp=2, layers=2)
    job = PlantedJob(shape, slow_device(shape, 5), 9)
    traces = traces_of(job, CLEAR, 9)
    found = found_in(operations_of(job, [told_by_the_host(trace) for trace in traces]))
    assert found.matched_by == "sequence numbers"
    assert [one.rank for one in found.ranks] == [5]
    assert found.unmatched == 0


def test_pauses_on_all_ranks_are_told_as_that() -> None:
    shape = JobShape(dp=8, layers=3)
    pauses = np.where(np.random.default_rng(1).random((8, 8)) < 0.3, 4000.0, 0.0)
    job = PlantedJob(shape, PlantedFault("pauses_everywhere", pause_us=pauses, pause_is_seen=False), 10)
    found = found_in(operations_of(job, traces_of(job, CLEAR, 10)))
    assert (found.verdict, found.ranks, found.cause) == ("moving_imbalance", [], "host")
    assert found.reason.startswith("the hosts of all ranks pause now and then")


def test_groups_that_nothing_names_are_not_guessed() -> None:
    shape = JobShape(dp=4, tp=2, layers=3)
    job = PlantedJob(shape, slow_device(shape, 6), 5)
    found = found_in(operations_of(job, traces_of(job, Clarity(groups=False), 5)))
    assert (found.verdict, found.ranks) == ("not_judged", [])
    assert "process group" in found.reason


def as_on_busy_hosts(operations: list[RankOperations], late_ms: int) -> list[RankOperations]:
    """CPU ranks that wait for a core when an operation is over: each notes its end late, but before the next one."""
    chance = np.random.default_rng(5)
    found = []
    for one in operations:
        columns = one.columns
        end = columns.start_ns + columns.duration_ns + chance.integers(0, late_ms * 1_000_000 + 1, len(one))
        end[:-1] = np.minimum(end[:-1], columns.start_ns[1:])
        found.append(replace(one, kind="cpu", columns=replace(columns, duration_ns=end - columns.start_ns)))
    return found


@pytest.mark.parametrize("late_ms", [0, 5, 40])
@pytest.mark.parametrize(("shape", "several"), [(JobShape(dp=2), False), (JobShape(dp=2, tp=2), True)])
def test_ends_apart_on_busy_hosts_make_no_several_groups(shape: JobShape, several: bool, late_ms: int) -> None:
    job = PlantedJob(shape, PlantedFault(), 5)
    matched = match(as_on_busy_hosts(operations_of(job, traces_of(job, Clarity(groups=False), 5)), late_ms))
    assert matched.guessed
    assert ends_together(matched) is not several


def test_ranks_that_were_not_captured_are_said() -> None:
    shape = JobShape(dp=8, layers=3)
    job = PlantedJob(shape, slow_device(shape, 6), 6)
    operations = operations_of(job, traces_of(job, CLEAR, 6))
    found = found_in(operations[:6])
    assert found.not_captured == [6, 7]
    assert found.ranks == []
    assert any("anks 6 and 7" in text for text in found.unidentifiable)


def test_a_trace_that_was_cut_short_costs_its_own_rank_only() -> None:
    shape = JobShape(dp=8, layers=3)
    job = PlantedJob(shape, slow_device(shape, 6), 13)
    traces = traces_of(job, CLEAR, 13)
    early = int(np.quantile(traces[1].rows.end_ns, 0.2))
    cut = replace(traces[1], rows=traces[1].rows.select(traces[1].rows.end_ns < early))
    found = found_in(operations_of(job, [traces[0], cut, *traces[2:]]))
    assert [one.rank for one in found.ranks] == [6]
    assert found.not_captured == []
    assert any(text.startswith("Rank 1 was left out: too few") for text in found.unidentifiable)


@pytest.mark.parametrize(("changed", "verdict"), [({"sampled": True}, "not_judged"), ({"cut": True}, "straggler")])
def test_what_was_not_recorded_is_said(changed: dict[str, Any], verdict: str) -> None:
    shape = JobShape(dp=8, layers=3)
    job = PlantedJob(shape, slow_device(shape, 6), 6)
    one, *others = operations_of(job, traces_of(job, CLEAR, 6))
    found = found_in([replace(one, **changed), *others])
    assert found.verdict == verdict
    assert "sample" in found.reason or any("250,000" in text for text in found.unidentifiable)


def test_operations_survive_the_store_and_damage_is_refused() -> None:
    job = PlantedJob(JobShape(dp=2, layers=2, iterations=3), PlantedFault(), 7)
    one, other = operations_of(job, traces_of(job, CLEAR, 7))
    data = encode(one)
    assert encode(decode(data)) == data
    for broken in (b"", b"x", data[:-9], data[:50] + b"\0" * 20 + data[70:]):
        with pytest.raises(UnreadableOperations):
            decode(broken)
    judged = stragglers_of_summaries([(0, data, len(data)), (1, b"broken", 6), (2, encode(replace(other, rank=2)), 1)])
    assert judged is not None
    assert "The operations of rank 1 were not stored" in judged.unidentifiable


def test_the_words_hold_no_control_character_of_a_trace() -> None:
    job = PlantedJob(JobShape(dp=8, layers=3), slow_device(JobShape(dp=8, layers=3), 1), 8)
    found = found_in(operations_of(job, traces_of(job, CLEAR, 8)))
    lines = list_stragglers(found, 80)
    assert lines[0] == "The others wait for rank 1"
    assert lines[1].startswith("  rank    1  late by ")
    assert all(len(line) <= 80 for line in lines)
