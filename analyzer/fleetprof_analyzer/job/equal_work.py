"""Groups of ranks that do the same work on GPUs of one model: the same kernels, as often.

Guarantees: pure; a rank is in one group at most. Communication does not count, since it is as long as others let it
be, nor what no kernel is named of. Windows are cut anywhere, so a small part may differ.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from fleetprof_analyzer.rank.measures.kernels.kernels import OTHER, KernelGroup
from fleetprof_analyzer.trace.classes import WorkClass

DIFFERENT: Final = 0.02
"""The share of device time by which two ranks' work may differ and be the same."""
_MOST_GROUPS: Final = 32

_Work = Mapping[str, tuple[int, int]]  # count and total ns, by name


def group_equal_work(ranks: Sequence[tuple[int, str, Sequence[KernelGroup]]]) -> list[list[int]]:
    """Numbers of the ranks of each group, from (number, device model, kernels); of more groups than 32 the first."""
    groups: list[tuple[str, _Work, list[int]]] = []
    for number, device, kernels in ranks:
        work = {
            group.name: (group.count, group.total_ns)
            for group in kernels
            if group.name != OTHER and group.work_class == WorkClass.COMPUTE
        }
        if not work:
            continue
        for other_device, other, members in groups:
            if device == other_device and _is_same(work, other):
                members.append(number)
                break
        else:
            if len(groups) < _MOST_GROUPS:
                groups.append((device, work, [number]))
    return [members for _, _, members in groups]


def _is_same(work: _Work, other: _Work) -> bool:
    """Tells whether counts are alike, each weighed with the mean time of its kernel."""
    different = whole = 0.0
    for name in work.keys() | other.keys():
        count, total_ns = work.get(name, (0, 0))
        other_count, other_ns = other.get(name, (0, 0))
        mean_ns = (total_ns + other_ns) / max(1, count + other_count)
        different += abs(count - other_count) * mean_ns
        whole += max(count, other_count) * mean_ns
    return different <= DIFFERENT * whole
