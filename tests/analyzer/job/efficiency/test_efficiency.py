"""A job's floating-point operations per second, against the published peak of its device."""

import pytest
from fleetprof_analyzer.job.efficiency.efficiency import measure_efficiency
from fleetprof_analyzer.job.efficiency.peaks import PEAKS, find_peak
from fleetprof_analyzer.words.efficiency import list_efficiency
from fleetprof_api.report.efficiency import RankFlops, TypeFlops
from fleetprof_api.report.module_tree import ModuleTimes, ModuleTree
from fleetprof_api.report.report import Rank, Report, TimeBreakdown

H100, MS = "NVIDIA H100 80GB HBM3", 1_000_000
TERA = 10**12


SPEED = "400 TFLOP/s per rank on NVIDIA H100 80GB HBM3: 200 TFLOP (bfloat16) in an iteration of 500 ms."
PEAK = "of the published 989 TFLOP/s (NVIDIA H100 Tensor Core GPU data sheet, 2024)"


def rank(number: int, device: str = H100, bfloat16: int = 200, float32: int = 0, **more: object) -> Rank:
    types = [("bfloat16", bfloat16 * TERA), ("float32", float32 * TERA)]
    by_type = [TypeFlops(data_type=kind, flops=count) for kind, count in types if count]
    flops = RankFlops(
        flops=sum(one.flops for one in by_type), by_type=by_type, iteration_ns=500 * MS,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return Rank(
        rank=number, source="t", kind="gpu", time_basis="device", time_ns=TimeBreakdown(), device_name=device,
        flops=flops,
    )  # fmt: skip


def tree(again: int) -> ModuleTree:
    return ModuleTree(whole=ModuleTimes(flops=1000), recompute=ModuleTimes(flops=again))


def say(*ranks: Rank, module_tree: ModuleTree | None = None) -> list[str]:
    return list_efficiency(Report(efficiency=measure_efficiency(ranks, module_tree)))


def test_utilization_is_of_the_peak_for_the_mix_of_data_types() -> None:
    """A fifth of a second at bfloat16's peak and a fifth at float32's in half a second."""
    (found,) = measure_efficiency([rank(0, bfloat16=99, float32=7), rank(1, bfloat16=99, float32=6)], tree(250))
    assert found.ranks == 2
    assert found.flops == 105_500_000_000_000
    assert found.flops_per_second == 211 * TERA
    assert found.hardware_utilization_permille == round(1000 * (99 / 989.4 + 6.5 / 66.9) / 0.5)
    assert found.model_utilization_permille == 295
    assert found.recomputed_permille == 250


@pytest.mark.parametrize(
    ("ranks", "module_tree", "sentence"),
    [
        ([rank(0)], tree(0), f"{SPEED} MFU 40.4 % {PEAK}."),
        ([rank(0)], tree(250), f"{SPEED} MFU 30.3 % {PEAK}, 40.4 % with what is computed again in backward (HFU)."),
        (
            [rank(0)], None,
            f"{SPEED} 40.4 % {PEAK}, with what may be computed again in backward; ModuleTree tells that apart (MFU).",
        ),
        (
            [rank(0, "Wonder 1"), rank(1, "Wonder 1")], tree(0),
            "400 TFLOP/s per rank on Wonder 1: 200 TFLOP (bfloat16) in an iteration of 500 ms, mean of 2 ranks. "
            "No published peak is known for Wonder 1 and these data types.",
        ),
        (
            [rank(0, hidden=["graphs"])], tree(0),
            f"at least {SPEED} How much of the peak is used cannot be told: CUDA graphs were replayed, and their "
            "operators are in no trace.",
        ),
    ],
    ids=["nothing again", "again", "no tree", "unknown device", "graphs"],
)  # fmt: skip
def test_what_is_said(ranks: list[Rank], module_tree: ModuleTree | None, sentence: str) -> None:
    assert say(*ranks, module_tree=module_tree) == [sentence]


def test_products_in_tensor_float_have_that_peak() -> None:
    (found,) = measure_efficiency([rank(0, bfloat16=0, float32=100, single_precision="tfloat32")], None)
    assert found.peak_flops_per_second == 494_700_000_000_000


def test_kinds_of_devices_stand_apart() -> None:
    found = measure_efficiency([rank(0), rank(1), rank(2, "NVIDIA A30")], None)
    assert [(one.device_name, one.ranks) for one in found] == [(H100, 2), ("NVIDIA A30", 1)]


@pytest.mark.parametrize(
    ("name", "bfloat16"),
    [
        (H100, 989.4), ("NVIDIA H100 PCIe", 756.0), ("NVIDIA H200", 989.4), ("NVIDIA A100-SXM4-80GB", 312.0),
        ("A100-SXM4-40GB", 312.0), ("NVIDIA A100 80GB PCIe", 312.0), ("NVIDIA L4", 121.0),
    ],
)  # fmt: skip
def test_a_device_is_known_by_its_whole_name(name: str, bfloat16: float) -> None:
    peak = find_peak(name)
    assert peak is not None
    assert peak.tera["bfloat16"] == bfloat16


@pytest.mark.parametrize("name", ["", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100", "NVIDIA L40S-48Q", "NVIDIA A1000"])
def test_a_part_of_a_device_and_others_have_no_peak(name: str) -> None:
    assert find_peak(name) is None


def test_each_peak_has_its_source() -> None:
    assert all(peak.source.startswith(("NVIDIA ", "AMD ")) for peak in PEAKS)
