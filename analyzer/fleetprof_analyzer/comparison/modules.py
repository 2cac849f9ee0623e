"""Modules of two reports, each by its own work in one marked iteration: which of them differ most.

Guarantees: pure; a module is the same where its name and those of the modules around it are; one that a tree may only
have left out of its list is not called new or gone.
"""

from typing import Final

from fleetprof_api.report.diff import ModuleChange
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree

_MOST: Final = 20

_Path = tuple[str, ...]


def compare_modules(before: ModuleTree | None, after: ModuleTree | None) -> list[ModuleChange]:
    """The largest differences first; none where a tree is missing, or one is of a device and the other of a host."""
    if before is None or after is None or (before.whole.device_ns > 0) != (after.whole.device_ns > 0):
        return []
    basis = "device_ns" if before.whole.device_ns else "host_ns"
    first, second = _by_path(before), _by_path(after)
    changes = []
    for path in dict.fromkeys([*first, *second]):
        nodes = first.get(path), second.get(path)
        left_out = (before, after)[nodes.index(None)].left_out if None in nodes else 0
        if not left_out:
            changes.append(_compare(*nodes, basis))
    changed = [change for change in changes if change.difference_ns]
    return sorted(changed, key=lambda change: (-abs(change.difference_ns), change.name))[:_MOST]


def _by_path(tree: ModuleTree) -> dict[_Path, ModuleNode]:
    found: dict[_Path, ModuleNode] = {}
    around: list[str] = []
    for node in tree.nodes:
        del around[node.depth :]
        around.append(node.name)
        found[tuple(around)] = node
    return found


def _compare(first: ModuleNode | None, second: ModuleNode | None, basis: str) -> ModuleChange:
    times = [None if node is None else int(getattr(node.own, basis)) for node in (first, second)]
    launches = [0 if node is None else node.own.launches for node in (first, second)]
    saved = [None if node is None else node.saved_bytes for node in (first, second)]
    return ModuleChange(
        name=next(node.name for node in (first, second) if node is not None),
        before_ns=times[0],
        after_ns=times[1],
        difference_ns=(times[1] or 0) - (times[0] or 0),
        before_launches=launches[0],
        after_launches=launches[1],
        before_saved_bytes=saved[0],
        after_saved_bytes=saved[1],
    )
