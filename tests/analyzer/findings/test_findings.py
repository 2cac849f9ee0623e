"""Findings that are worth saying: thresholds, gains, ranks that stand out, and silence."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from fleetprof_analyzer import findings
from fleetprof_analyzer.findings import registry
from fleetprof_analyzer.findings.finding import FindingRule
from fleetprof_analyzer.findings.registry import RULES, find_findings
from fleetprof_analyzer.words.straggler_list import CAUSES
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.rank_tables import OperatorLaunches
from fleetprof_api.report.report import KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import (
    CommunicationStatistics,
    CopyStatistics,
    IdlePlace,
    KernelStatistics,
    StageName,
    Stages,
    StageTime,
)
from fleetprof_api.report.stragglers import Cause, PipelineBubbles, Straggler, Stragglers

SPAN = 1_000_000
ROOT = Path(__file__).parents[3]


def report_of(
    idle: dict[str, int] | None = None,
    *,
    time: dict[str, int] | None = None,
    ranks: list[dict[str, int]] | None = None,
    recorded: int | None = None,
    stragglers: Stragglers | None = None,
    copies: list[CopyStatistics] | None = None,
) -> Report:
    """A report whose times are permille of the span; `ranks` are the ranks' own idle causes."""
    time_ns = TimeBreakdown(span=SPAN, **{name: 1000 * value for name, value in (time or {}).items()})
    each = [IdleCauses(**{n: 1000 * v for n, v in causes.items()}) for causes in ranks or [idle or {}]]
    return Report(
        totals=[KindTotal(kind="gpu", time_basis="device", ranks=len(each), time_ns=time_ns,
                          idle_ns=IdleCauses(**{name: 1000 * value for name, value in (idle or {}).items()}))],
        ranks=[Rank(rank=number, source=str(number), kind="gpu", time_basis="device", time_ns=time_ns, idle_ns=causes,
                    recorded_permille=recorded, copies=copies or []) for number, causes in enumerate(each)],
        stragglers=stragglers,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("idle", "time", "found"),
    [
        ({}, {}, []),
        ({"data_loading": 29, "synchronization": 19, "host_python": 49, "optimizer": 29, "host_allocation": 19,
          "launching": 40, "host_operators": 39}, {"exposed_communication": 99, "exposed_memory": 29}, []),
        ({"data_loading": 30}, {}, [("data_loading", 30)]),
        ({"launching": 40, "host_operators": 30, "host_runtime": 10}, {}, [("launch_bound", 80)]),
        ({"waiting": 400, "waiting_short": 360, "unknown": 300}, {}, []),
        ({"waiting": 400, "waiting_short": 40}, {}, [("waiting", 360)]),
        ({"data_loading": 100, "host_python": 300, "synchronization": 200}, {"exposed_communication": 250},
         [("python", 300), ("exposed_communication", 250), ("synchronization", 200), ("data_loading", 100)]),
        ({}, {"exposed_memory": 50}, [("exposed_copies", 50)]),
    ],
)  # fmt: skip
def test_findings_by_gain(idle: dict[str, int], time: dict[str, int], found: list[tuple[str, int]]) -> None:
    rows = find_findings(report_of(idle, time=time))
    assert [(finding.kind, finding.gain_permille) for finding in rows] == found
    assert all(finding.advice and finding.measure and finding.value_ns is not None for finding in rows)


def test_ranks_that_stand_out_are_named() -> None:
    ranks = [{"data_loading": share} for share in (10, 12, 300, 11)]
    (finding,) = find_findings(report_of({"data_loading": 83}, ranks=ranks))
    assert finding.ranks == [2]
    (finding,) = find_findings(report_of({"data_loading": 83}, ranks=[{"data_loading": 83}] * 4))
    assert finding.ranks == []


def test_a_sample_of_a_trace_says_nothing_about_idle_time() -> None:
    found = find_findings(report_of({"data_loading": 400}, time={"exposed_memory": 40}, recorded=20))
    assert [finding.kind for finding in found] == ["exposed_copies"]


@pytest.mark.parametrize("cause", get_args(Cause))
def test_every_cause_has_its_words(cause: Cause) -> None:
    assert CAUSES[cause]


@pytest.mark.parametrize(
    ("verdict", "gain", "found"),
    [("straggler", 0.2, ["straggler"]), ("straggler", 0.004, ["exposed_communication"]),
     ("nobody", 0.0, ["exposed_communication"]), ("not_judged", 0.0, ["exposed_communication"])],
)  # fmt: skip
def test_a_straggler_stands_for_the_waiting_that_it_causes(verdict: Any, gain: float, found: list[str]) -> None:
    late = Stragglers(verdict=verdict, reason="rank 3 is late", gain=gain,
                      ranks=[Straggler(rank=3, lateness_ns=1, cause="host")])  # fmt: skip
    rows = find_findings(report_of(time={"exposed_communication": 150}, stragglers=late))
    assert [finding.kind for finding in rows] == found
    if found == ["straggler"]:
        assert (rows[0].message, rows[0].ranks, rows[0].gain_permille) == ("Rank 3 is late", [3], 200)


def test_a_launch_bound_job_names_the_operators_that_launch_most() -> None:
    operators = [OperatorLaunches(name=name, own_launches=count) for name, count in
                 (("(none)", 90), ("aten::add_", 50), ("aten::mm", 70))]  # fmt: skip
    report = msgspec.structs.replace(report_of({"launching": 90}), launching_operators=operators)
    (finding,) = find_findings(report)
    assert finding.names == ["aten::mm", "aten::add_"]


def kernel(name: str) -> KernelStatistics:
    return KernelStatistics(
        name=name, work_class="compute", count=1, total_ns=1, mean_ns=1, min_ns=1, max_ns=1, deviation_ns=0, p50_ns=1,
        p90_ns=1, p99_ns=1, ranks=1,
    )  # fmt: skip


@pytest.mark.parametrize(("idle", "operator", "of_kernel", "words", "not_said"), [
    ("optimizer", "aten::add_", "gemm", "fused=True, or else with foreach=True", "already"),
    ("optimizer", "aten::_foreach_addcdiv_", "gemm", "fused=True", "foreach"),
    ("optimizer", "aten::_foreach_norm", "gemm", "or else with foreach=True", "already"),  # of clipping
    ("optimizer", "aten::_fused_adamw_", "gemm", "fused already", "fused=True"),
    ("launching", "aten::add_", "gemm", "try torch.compile", "in use"),
    ("launching", "aten::add_", "triton_poi_fused_add_0", "torch.compile is in use", "try torch.compile"),
    ("launching", "aten::add_", "triton_flash_attention", "try torch.compile", "in use"),  # a library's own
])  # fmt: skip
def test_what_is_in_use_is_not_advised(idle: str, operator: str, of_kernel: str, words: str, not_said: str) -> None:
    (finding,) = find_findings(
        msgspec.structs.replace(
            report_of({idle: 90}), launching_operators=[OperatorLaunches(name=operator)], kernels=[kernel(of_kernel)]
        )
    )
    assert words in finding.advice
    assert not_said not in finding.advice


def test_a_job_that_waits_for_its_device_names_the_operators_that_read_from_it() -> None:
    calls = {"aten::mm": 90, "aten::nonzero": 5, "aten::item": 70, "aten::_local_scalar_dense": 70}
    operators = [OperatorLaunches(name=name, calls=count) for name, count in calls.items()]
    report = msgspec.structs.replace(report_of({"synchronization": 40}), launching_operators=operators)
    (finding,) = find_findings(report)
    assert finding.names == ["aten::_local_scalar_dense", "aten::item", "aten::nonzero"]


@pytest.mark.parametrize(("transfer", "sizes", "words"), [
    (None, [(4096, 90)], "all ranks"),
    (0.3, [(4096, 90)], "even over the ranks"),
    (0.8, [(4096, 90)], "larger messages"),
    (0.8, [(25 << 20, 90)], "fewer bytes"),
    (0.8, [(None, 90), (4096, 10)], "begin earlier"),  # of most of the time nothing says how much is sent
    (0.8, [], "begin earlier"),
])  # fmt: skip
def test_advice_on_communication_follows_from_what_is_sent(
    transfer: float | None, sizes: list[tuple[int | None, int]], words: str
) -> None:
    rows = [
        CommunicationStatistics(kind="all_reduce", message_bytes=size, count=10, total_ns=total, min_ns=1,
                                overlapped_ns=0, ranks=2)
        for size, total in sizes
    ]  # fmt: skip
    report = report_of(time={"exposed_communication": 300}, stragglers=Stragglers(transfer_share=transfer))
    (finding,) = find_findings(msgspec.structs.replace(report, communication=rows))
    assert words in finding.advice
    assert "larger" not in finding.advice or words == "larger messages"


WAITS = "by the pipeline's schedule each device waits 28.0 % of the iteration on average"
EVEN = PipelineBubbles(share=0.28, ideal_share=3 / 11, stages=4, microbatches=8)


@pytest.mark.parametrize(("pipeline", "message", "advice"), [
    (EVEN, f"{WAITS}; in 1F1B with 4 equal stages and 8 microbatches it is 27.3 %", "run more microbatches"),
    (PipelineBubbles(share=0.28, ideal_share=3 / 19, stages=4, microbatches=8, chunks=2),
     f"{WAITS}; in interleaved 1F1B with 4 equal stages, 2 parts of the model on each, and 8 microbatches it is 15.8 %",
     "give all stages the same work"),
    (PipelineBubbles(share=0.28, stages=4), WAITS, "run more microbatches"),
    # Most of the waiting is none of the schedule's.
    (PipelineBubbles(share=0.1, ideal_share=0.1, stages=2, microbatches=9),
     "the ranks wait for each other in their collectives", "even over the ranks"),
])  # fmt: skip
def test_bubbles_of_a_pipeline_are_called_by_their_name(pipeline: PipelineBubbles, message: str, advice: str) -> None:
    found = Stragglers(verdict="nobody", transfer_share=0.2, pipeline=pipeline)
    (finding,) = find_findings(report_of(time={"exposed_communication": 300}, stragglers=found))
    assert finding.message.endswith(message)
    assert advice in finding.advice


@pytest.mark.parametrize(("place", "end"), [
    (IdlePlace(kind="python", time_ns=60_000, count=1), "between operators"),
    (IdlePlace(kind="python", time_ns=60_000, count=1, after="aten::item", before="aten::mm", after_work="gemm",
               after_stream="7", before_work="relu", before_stream="9"),
     "between operators, most of it between aten::item and aten::mm, after gemm on stream 7 and before relu on "
     "stream 9"),
    (IdlePlace(kind="python", time_ns=60_000, count=1, before_work="relu", before_stream="9"),
     "between operators, most of it before relu on stream 9"),
    (IdlePlace(kind="python", time_ns=30_000, count=1, before_work="relu", before_stream="9"),
     "between operators, 33 % of it before relu on stream 9"),
    (IdlePlace(kind="optimizer", time_ns=9, count=1, after="aten::add_"), "between operators"),
])  # fmt: skip
def test_idle_time_says_between_what_it_lies(place: IdlePlace, end: str) -> None:
    line = PlaceInCode(file="train.py", line=3)
    report = report_of({"host_python": 90})
    (one,) = report.ranks
    held = msgspec.structs.replace(one, idle_places=[msgspec.structs.replace(place, place=line)])
    (finding,) = find_findings(msgspec.structs.replace(report, ranks=[held]))
    assert finding.message.endswith(end)
    assert finding.place == (line if place.kind == "python" else None)


def test_a_place_that_holds_little_of_the_idle_time_is_not_where_it_lies() -> None:
    report = report_of({"host_python": 90})
    little = IdlePlace(
        kind="python", time_ns=22_000, count=1, after="aten::item", place=PlaceInCode(file="train.py", line=3)
    )
    ranks = [msgspec.structs.replace(rank, idle_places=[little]) for rank in report.ranks]
    (finding,) = find_findings(msgspec.structs.replace(report, ranks=ranks))
    assert finding.message == "the GPU waits for Python between operators"
    assert (finding.place, finding.names) == (None, [])


ZEROING = IdlePlace(kind="optimizer", time_ns=60_000, count=1, operator="aten::_foreach_zero_")
STEPPING = IdlePlace(kind="optimizer", time_ns=60_000, count=1, operator="aten::_fused_adamw_")


@pytest.mark.parametrize(("places", "times", "words"), [
    ([], {}, "fused=True"),
    ([STEPPING], {"zero_grad": 1, "optimizer": 9}, "fused=True"),
    ([], {"zero_grad": 9, "optimizer": 1}, "while the device still has work"),
    ([ZEROING], {"zero_grad": 1, "optimizer": 9}, "set_to_none=True"),
])  # fmt: skip
def test_a_fused_optimizer_is_no_advice_against_zero_grad(
    places: list[IdlePlace], times: dict[StageName, int], words: str
) -> None:
    report = report_of({"optimizer": 90})
    stages = Stages(stages=[StageTime(stage=stage, time_ns=time_ns) for stage, time_ns in times.items()])
    ranks = [msgspec.structs.replace(rank, idle_places=places, stages=stages) for rank in report.ranks]
    (finding,) = find_findings(msgspec.structs.replace(report, ranks=ranks))
    assert words in finding.advice
    assert ("zero_grad" in finding.message) == (words != "fused=True")


def test_idle_time_of_one_rank_has_that_ranks_place() -> None:
    ranks = [{"data_loading": share} for share in (10, 12, 300, 11)]
    report = report_of({"data_loading": 83}, ranks=ranks)
    held = [
        msgspec.structs.replace(rank, idle_places=[
            IdlePlace(kind="data_loading", time_ns=200_000 - number, count=1, after=f"rank {number}")])
        for number, rank in enumerate(report.ranks)
    ]  # fmt: skip
    (finding,) = find_findings(msgspec.structs.replace(report, ranks=held))
    assert finding.names == ["rank 2"]


def test_copies_from_memory_that_is_not_pinned_are_told_from_others() -> None:
    pageable = CopyStatistics(kind="HtoD", pageable=True, count=1, total_ns=1, bytes=1)
    for copies, words in (([pageable], "copy from pinned host memory"), ([], "look at the longest copies")):
        (found,) = find_findings(report_of(time={"exposed_memory": 40}, copies=copies))
        assert found.advice.startswith(words)


def test_what_one_kind_of_ranks_loses_hides_nothing_of_the_other() -> None:
    with_gpu = report_of(time={"exposed_memory": 40})
    sending = msgspec.structs.replace(with_gpu.ranks[0], rank=1, kind="cpu")
    time_ns = TimeBreakdown(span=SPAN, exposed_communication=150_000)
    without = KindTotal(kind="cpu", time_basis="host", ranks=1, time_ns=time_ns)
    report = Report(totals=[*with_gpu.totals, without], ranks=[*with_gpu.ranks, sending])
    assert [one.kind for one in find_findings(report)] == ["exposed_communication", "exposed_copies"]


def test_every_rule_of_a_module_is_in_the_registry() -> None:
    found = []
    for module in pkgutil.iter_modules(findings.__path__):
        values = vars(importlib.import_module(f"{findings.__name__}.{module.name}")).values()
        found += [
            (module.name, value.kind) for value in values if isinstance(value, FindingRule) and value not in RULES
        ]
    assert not found, f"never found: {found}: add the rule to {registry.__file__}"


def test_every_kind_is_documented() -> None:
    section = (ROOT / "docs/measures.md").read_text().split("## Findings")[1].split("\n## ")[0]
    assert [rule.kind for rule in RULES if f"`{rule.kind}`" not in section] == []
