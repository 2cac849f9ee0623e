"""The roofline: the least time that a device's peaks allow for operations and bytes, over the time that it took.

Guarantees: pure; null where a peak, the operations or the bytes are not known, or the work is not a device's. Bytes are
those of shapes, so that work which stays in a cache may be above the roof.
"""

from collections.abc import Sequence

import msgspec
from fleetprof_api.report.efficiency import Efficiency, OperatorAmounts, Roof
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree

NO_ROOF: tuple[Roof, int | None] = ("", None)


def find_roof(
    flops: int, moved_bytes: int, time_ns: int, peak_flops: int | None, peak_bytes: int | None
) -> tuple[Roof, int | None]:
    """The peak that bounds this work, and the least time over `time_ns`, ‰; peaks per second."""
    if not moved_bytes or time_ns <= 0 or not peak_bytes or (flops and not peak_flops):
        return NO_ROOF
    memory = moved_bytes / peak_bytes
    compute = flops / peak_flops if peak_flops else 0.0
    return ("compute" if compute > memory else "memory"), round(1e12 * max(compute, memory) / time_ns)


def merge_operators(
    ranks: Sequence[Sequence[OperatorAmounts]], peak_flops: int | None, peak_bytes: int | None
) -> list[OperatorAmounts]:
    """Means over ranks, the most time first."""
    names = dict.fromkeys(one.name for rank in ranks for one in rank)
    merged = []
    fields = ("calls", "flops", "moved_bytes", "work_ns")
    for operator in names:
        same = [one for rank in ranks for one in rank if one.name == operator]
        calls, flops, moved_bytes, work_ns = (sum(getattr(one, name) for one in same) // len(ranks) for name in fields)
        roof, permille = find_roof(flops, moved_bytes, work_ns, peak_flops, peak_bytes)
        merged.append(
            OperatorAmounts(
                name=operator, calls=calls, flops=flops, moved_bytes=moved_bytes, work_ns=work_ns, roof=roof,
                roof_permille=permille,
            )
        )  # fmt: skip
    return sorted(merged, key=lambda one: (-one.work_ns, one.name))


def add_roofs(tree: ModuleTree | None, efficiency: Sequence[Efficiency]) -> ModuleTree | None:
    """The tree with its modules' roofs, where the job has one kind of device, and its peaks are known."""
    if tree is None or len(efficiency) != 1 or not tree.whole.device_ns or efficiency[0].hidden:
        return tree
    return msgspec.structs.replace(tree, nodes=[_add(node, efficiency[0]) for node in tree.nodes])


def _add(node: ModuleNode, device: Efficiency) -> ModuleNode:
    parts = node.forward, node.backward, node.recompute
    flops, moved_bytes, time_ns = (
        sum(getattr(part, name) for part in parts) for name in ("flops", "moved_bytes", "device_ns")
    )
    roof, permille = find_roof(flops, moved_bytes, time_ns, device.peak_flops_per_second, device.peak_bytes_per_second)
    return msgspec.structs.replace(node, roof=roof, roof_permille=permille)
