"""The modules of a job: the trees of its ranks as one, the same module on all ranks in one node.

Guarantees: pure; whichever order the ranks come in, the node is the same but for its place among its neighbors; at most
`MOST_NODES` nodes, those with the most time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from fleetprof_api.report.module_tree import MOST_NODES, ModuleNode, ModuleTimes, ModuleTree

_TIMES: Final = ("whole", "in_modules", "unmatched", "unassigned_backward", "recompute", "communication")
_PARTS: Final = ("forward", "backward", "recompute", "own")
_MEANS: Final = ("calls", "elapsed_ns")


@dataclass(slots=True)
class _Place:
    """A module in the modules around it, and its node on each rank that has it."""

    nodes: list[tuple[int | None, ModuleNode]] = field(default_factory=list)
    inside: "dict[str, _Place]" = field(default_factory=dict)


def merge_modules(trees: Sequence[tuple[int | None, ModuleTree | None]]) -> ModuleTree | None:
    """The tree of all ranks, with the means of times over the ranks that have a module; None where no rank has one."""
    known = [(rank, tree) for rank, tree in trees if tree is not None]
    if not known:
        return None
    top = _Place()
    for rank, tree in known:
        around = [top]
        for node in tree.nodes:
            del around[node.depth + 1 :]
            place = around[-1].inside.setdefault(node.name, _Place())
            place.nodes.append((rank, node))
            around.append(place)
    by_device = any(tree.whole.device_ns for _, tree in known)
    nodes: list[ModuleNode] = []
    _flatten(top, 0, by_device, nodes)
    kept = _keep_largest(nodes, by_device)
    merged: dict[str, Any] = {name: _mean([getattr(tree, name) for _, tree in known]) for name in _TIMES}
    return ModuleTree(
        ranks=len(known),
        measured_iterations=min(tree.measured_iterations for _, tree in known),
        iteration_ns=sum(tree.iteration_ns for _, tree in known) // len(known),
        **merged,
        held=known[0][1].held,
        **_merge_batch([tree for _, tree in known]),
        ended_early=any(tree.ended_early for _, tree in known),
        left_out=max(tree.left_out for _, tree in known) + len(nodes) - len(kept),
        nodes=kept,
    )


def _merge_batch(trees: Sequence[ModuleTree]) -> dict[str, Any]:
    """Means over the ranks, where all name the same modules."""
    found: dict[str, Any] = {}
    for amount, owner in (("rows", "rows_of"), ("indices", "indices_of")):
        counts = [getattr(tree, amount) for tree in trees]
        if None not in counts and len({getattr(tree, owner) for tree in trees}) == 1:
            found |= {amount: sum(counts) // len(counts), owner: getattr(trees[0], owner)}
    return found


def time_of(node: ModuleNode, *, by_device: bool) -> int:
    """The work of a module with all inside it, ns: of the device, or of operators on the host."""
    name = "device_ns" if by_device else "host_ns"
    return sum(getattr(part, name) for part in (node.forward, node.backward, node.recompute))


def _flatten(place: _Place, depth: int, by_device: bool, into: list[ModuleNode]) -> None:
    for inside in place.inside.values():
        into.append(_merge(inside.nodes, depth, by_device))
        _flatten(inside, depth + 1, by_device, into)


def _merge(nodes: Sequence[tuple[int | None, ModuleNode]], depth: int, by_device: bool) -> ModuleNode:
    every = [node for _, node in nodes]
    slowest = max(nodes, key=lambda one: time_of(one[1], by_device=by_device))
    several = len(nodes) > 1
    return msgspec.structs.replace(
        every[0],
        depth=depth,
        ranks=len(nodes),
        measured_iterations=min(node.measured_iterations for node in every),
        slowest_rank=slowest[0] if several else None,
        slowest_ns=time_of(slowest[1], by_device=by_device) if several else None,
        **{name: _mean([getattr(node, name) for node in every]) for name in _PARTS},
        **{name: sum(getattr(node, name) for node in every) // len(every) for name in _MEANS},
    )


def _mean(times: Sequence[ModuleTimes]) -> ModuleTimes:
    fields = ModuleTimes.__struct_fields__
    return ModuleTimes(**{name: sum(getattr(one, name) for one in times) // len(times) for name in fields})


def _keep_largest(nodes: list[ModuleNode], by_device: bool) -> list[ModuleNode]:
    """The nodes with the most time, with the nodes around them; of equal times the outer one stands first."""
    rank_of: Callable[[int], int] = lambda at: -time_of(nodes[at], by_device=by_device)  # noqa: E731
    kept = set(sorted(range(len(nodes)), key=rank_of)[:MOST_NODES])
    # Means over fewer ranks may pass those of what is around.
    depth_of_gap: int | None = None
    chosen = []
    for at, node in enumerate(nodes):
        if depth_of_gap is not None and node.depth > depth_of_gap:
            continue
        depth_of_gap = None if at in kept else node.depth
        if at in kept:
            chosen.append(node)
    return chosen
