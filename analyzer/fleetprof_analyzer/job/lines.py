"""The work of a marked iteration by the line of the job that calls modules, over all of them that it calls.

Guarantees: pure; work inside a module that was called at a line counts for that line and for the lines of the modules
around it, and once for each: a line that calls itself is one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetprof_api.report.module_tree import ModuleNode, ModuleTree

from fleetprof_analyzer.job.modules import time_of


@dataclass(slots=True)
class LineWork:
    """One line; amounts are sums over the modules that it calls, with all inside them. None: not known of any."""

    file: str
    line: int
    modules: list[str] = field(default_factory=list)
    time_ns: int = 0
    calls: int = 0
    launches: int = 0
    flops: int = 0
    saved_bytes: int | None = None
    parameter_bytes: int | None = None


def list_lines(tree: ModuleTree) -> list[LineWork]:
    """The lines, the most work first; of equal ones in the order of files and lines."""
    found: dict[tuple[str, int], LineWork] = {}
    by_device = tree.whole.device_ns > 0
    for node, around in _walk(tree):
        places = {(one.call_file, one.call_line) for one in (*around, node) if one.call_line}
        for place in places:
            work = found.setdefault(place, LineWork(*place))
            work.saved_bytes = _add(work.saved_bytes, node.saved_bytes)
            work.parameter_bytes = _add(work.parameter_bytes, node.parameter_bytes)
        place = node.call_file, node.call_line
        if node.call_line and all((one.call_file, one.call_line) != place for one in around):
            work = found[place]
            work.modules.append(node.name)
            work.time_ns += time_of(node, by_device=by_device)
            work.calls += node.calls
            for part in (node.forward, node.backward, node.recompute):
                work.launches += part.launches
                work.flops += part.flops
    return sorted(found.values(), key=lambda one: (-one.time_ns, one.file, one.line))


def _walk(tree: ModuleTree) -> Iterator[tuple[ModuleNode, list[ModuleNode]]]:
    """Each node with those around it."""
    around: list[ModuleNode] = []
    for node in tree.nodes:
        del around[node.depth :]
        yield node, list(around)
        around.append(node)


def _add(total: int | None, more: int | None) -> int | None:
    return total if more is None else more + (total or 0)
