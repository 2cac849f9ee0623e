"""The roofline: the least time that peaks allow, and the peak that bounds it."""

import msgspec
import pytest
from fleetprof_analyzer.job.efficiency.roofline import add_roofs, find_roof, merge_operators
from fleetprof_analyzer.words.modules import roof_of
from fleetprof_api.report.efficiency import Efficiency, OperatorAmounts
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree

FLOPS, BYTES = 1000 * 10**12, 10**12  # per second: the ridge lies at 1,000 FLOP/B
MS = 1_000_000


@pytest.mark.parametrize(
    ("flops", "moved_bytes", "time_ns", "peaks", "roof"),
    [
        (10**12, 10**8, 2 * MS, (FLOPS, BYTES), ("compute", 500)),  # 1 ms at the peak, 0.1 ms of memory
        (10**11, 10**9, 2 * MS, (FLOPS, BYTES), ("memory", 500)),
        (0, 10**9, 4 * MS, (None, BYTES), ("memory", 250)),
        (10**12, 10**8, 2 * MS, (None, BYTES), ("", None)),
        (10**12, 10**8, 2 * MS, (FLOPS, None), ("", None)),
        (10**12, 0, 2 * MS, (FLOPS, BYTES), ("", None)),
        (10**12, 10**8, 0, (FLOPS, BYTES), ("", None)),
    ],
)
def test_the_larger_of_both_least_times_bounds(
    flops: int, moved_bytes: int, time_ns: int, peaks: tuple[int | None, int | None], roof: tuple[str, int | None]
) -> None:
    assert find_roof(flops, moved_bytes, time_ns, *peaks) == roof


def test_operators_are_means_of_ranks() -> None:
    ranks = [
        [OperatorAmounts(name="aten::mm", calls=2, flops=10**12, moved_bytes=10**8, work_ns=3 * MS)],
        [
            OperatorAmounts(name="aten::mm", calls=2, flops=10**12, moved_bytes=10**8, work_ns=1 * MS),
            OperatorAmounts(name="aten::gelu", calls=2, moved_bytes=2 * 10**9, work_ns=8 * MS),
        ],
    ]
    found = merge_operators(ranks, FLOPS, BYTES)
    assert [(one.name, one.calls, one.work_ns, one.roof, one.roof_permille) for one in found] == [
        ("aten::gelu", 1, 4 * MS, "memory", 250), ("aten::mm", 2, 2 * MS, "compute", 500),
    ]  # fmt: skip


def test_a_module_has_its_roof_where_the_job_has_one_kind_of_device() -> None:
    work = ModuleTimes(device_ns=2 * MS, flops=10**12, moved_bytes=10**8)
    tree = ModuleTree(whole=work, nodes=[ModuleNode(name="Net", forward=work)])
    device = Efficiency(peak_flops_per_second=FLOPS, peak_bytes_per_second=BYTES)
    found = add_roofs(tree, [device])
    assert found is not None
    assert roof_of(found.nodes[0]) == "50.0 % of what the peak allows, 10,000 FLOP/B"
    for others in ([], [device, device], [msgspec.structs.replace(device, hidden=["graphs"])]):
        assert add_roofs(tree, others) == tree
