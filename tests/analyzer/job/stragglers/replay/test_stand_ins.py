"""A rank that left no trace is played by one that does the same work, so that others cost what they cost."""

from collections.abc import Sequence

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.replay.matching import match
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_api.report.stragglers import Stragglers
from harness.traces.foreign_layouts import draw_foreign
from harness.traces.planted.faults import CAUSES
from harness.traces.recorders import RECORDERS, without_ranks
from harness.traces.simulated.cases import draw_simulated
from harness.traces.straggler_sections import operations_of_traces, stragglers_of_traces

GAIN_OFF = 0.03
SEED = 530_000


@pytest.mark.parametrize(
    ("layout", "missing", "stand_ins"),
    [
        ("tp", [3, 4], {3, 4}),  # one of each group of four
        ("ddp", [3], {3}),
        ("pipeline", [3], {3}),  # the last stage
        ("tp", [0, 1, 2, 3, 4], set()),  # more than are left
    ],
)
def test_who_is_played(layout: str, missing: list[int], stand_ins: set[int]) -> None:
    traces = without_ranks(draw_simulated(layout, "none", SEED).job.traces(), missing)
    played = Replay(match(operations_of_traces(traces))).played
    assert {one.rank for one in played.ranks} - set(traces) == stand_ins


@pytest.mark.parametrize(
    ("layout", "kind", "missing"), [("tp", "slow_gpu", [3, 4]), ("launch_hsdp", "data_loader", [3])]
)
def test_a_late_rank_costs_as_much_where_others_left_no_trace(layout: str, kind: str, missing: list[int]) -> None:
    case = draw_simulated(layout, kind, SEED)
    whole = stragglers_of_traces(case.job.traces())
    found = stragglers_of_traces(without_ranks(case.job.traces(), missing))
    assert [(one.rank, one.cause) for one in found.ranks] == [(one.rank, one.cause) for one in whole.ranks]
    assert found.gain == pytest.approx(whole.gain, abs=GAIN_OFF)
    assert found.not_captured == missing


def test_a_late_rank_of_a_pipeline_costs_as_much_without_its_neighbor() -> None:
    truth, found = of_pipeline([9])
    assert [(one.rank, one.cause) for one in found.ranks] == [(10, CAUSES["slow_host"])]
    assert found.gain == pytest.approx(truth, abs=GAIN_OFF)


def test_what_a_missing_rank_costs_is_said_of_nobody() -> None:
    truth, found = of_pipeline([10])
    assert (found.verdict, found.ranks) == ("undecided", [])
    share = float(found.reason.removeprefix("the ranks wait for ").split(" % ")[0]) / 100
    assert share == pytest.approx(truth, abs=GAIN_OFF)
    assert found.reason.endswith(" % of an iteration longer than the captured ones explain, and rank 10 left no trace")


def test_where_nothing_says_the_groups_of_a_missing_rank_that_is_said() -> None:
    traces = RECORDERS["no members of groups"](
        draw_simulated("tp", "slow_gpu", SEED).job.traces(), np.random.default_rng(0)
    )
    found = stragglers_of_traces(without_ranks(traces, [3, 4]))
    assert (found.verdict, found.ranks) == ("undecided", [])
    assert found.reason.startswith(
        "rank 1 takes 39.0 % longer than its peers, and what that costs is not known without "
    )
    assert found.reason.endswith(" ranks 3 and 4, which left no trace")


def of_pipeline(missing: Sequence[int]) -> tuple[float, Stragglers]:
    """The cost of rank 10 of four pipelines of four stages costs, and what is found without some ranks."""
    truth, traces, _ = draw_foreign("pipeline with numbers", "slow_host", SEED)
    return truth.gain, stragglers_of_traces(without_ranks(traces, missing))
