"""The process groups of a job by what they do: which grow with the number of ranks, and which belong to one replica.

No trace says it. Groups of sends and receives are a pipeline's; those that reduce in the first fifth of an iteration
reduce activations; others that reduce do so with gradients. Guarantees: pure; raises `NotTold` where that says nothing.
"""

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.trace.trace import Bools, Int64s
from fleetprof_analyzer.whatif.edits import NotTold
from fleetprof_analyzer.whatif.replay.graph import JobGraph
from fleetprof_analyzer.whatif.scaling.transfers import SMALL_ELEMENTS

_EARLY: Final = 0.2  # of an iteration's rows: no backward has begun
_SOME: Final = 0.05

_PAIRWISE: Final = frozenset(("send", "receive", "send_receive"))
_REDUCING: Final = frozenset(("all_reduce", "reduce_scatter"))


class GroupRole(Enum):
    """The use of a process group."""

    PAIRS = "passes activations on"
    ACTIVATIONS = "reduces activations"
    REPLICAS = "reduces gradients"
    SHARDS = "shares weights"
    EXCHANGES = "exchanges tokens"
    SMALL = "reduces single values"


@dataclass(frozen=True, slots=True)
class Replicas:
    """The ranks in replicas that only growing groups join: `of_rank` says whose each is.

    `grows` says it of each collective, `shares_weights` of the groups that grow.
    """

    of_rank: Int64s
    count: int
    grows: Bools
    shares_weights: bool
    groups: list[frozenset[int]]  # those that grow and reduce more than single values

    @property
    def ranks_each(self) -> int:
        """The ranks of one replica."""
        return len(self.of_rank) // self.count


def find_replicas(graph: JobGraph) -> Replicas:
    """The replicas of a job. Raises NotTold."""
    members = _members(graph)
    roles = _roles(graph, members)
    if GroupRole.EXCHANGES in roles.values():
        raise NotTold("ranks exchange tokens or rows with each other: nothing tells how those would be laid out")
    growing = {one for one, role in roles.items() if role is GroupRole.REPLICAS}
    shards = {one for one, role in roles.items() if role is GroupRole.SHARDS}
    shares_weights = not growing
    growing = growing or shards
    if not growing:
        raise NotTold("no group of ranks reduces gradients in this capture: nothing tells how replicas would meet")
    staying = [one for one, role in roles.items() if one not in growing and role is not GroupRole.SMALL]
    of_rank = _components(len(graph.courses), staying)
    count = int(of_rank.max()) + 1
    each = np.bincount(of_rank)
    if len(set(each.tolist())) > 1:
        raise NotTold(f"replicas of {each.min()} to {each.max()} ranks are not alike")
    spanning = {one for one, role in roles.items() if role is GroupRole.SMALL and len(set(of_rank[list(one)])) > 1}
    for one in growing | spanning:
        shared = np.bincount(of_rank[list(one)], minlength=count)
        if len(set(shared.tolist())) > 1:
            raise NotTold("groups of ranks overlap in a way that does not tell what one replica is")
    grows = np.array([one in growing or one in spanning for one in members], np.bool_)
    return Replicas(of_rank, count, grows, shares_weights, sorted(growing, key=min))


def _members(graph: JobGraph) -> list[frozenset[int]]:
    """The ranks that meet in each collective."""
    found: list[set[int]] = [set() for _ in range(len(graph.meetings.transfer_ns))]
    for rank, collective in zip(graph.meetings.rank.tolist(), graph.meetings.collective.tolist(), strict=True):
        found[collective].add(rank)
    return [frozenset(one) for one in found]


def _roles(graph: JobGraph, members: list[frozenset[int]]) -> dict[frozenset[int], GroupRole]:
    described: dict[frozenset[int], list[tuple[str, int, float]]] = defaultdict(list)
    for number, course in enumerate(graph.courses):
        assert course.operations is not None
        columns = course.operations.columns
        places = _place_in_iteration(graph.times[number].iteration)
        member, row = graph.rows_of(number)
        for one, at in zip(member.tolist(), row.tolist(), strict=True):
            group = members[graph.meetings.collective[one]]
            if len(group) > 1 and min(group) == number:
                operation = graph.meetings.operation[one]
                kind = KINDS[columns.kind[operation]]
                described[group].append((kind, int(columns.elements[operation]), float(places[at])))
    return {group: _role(found) for group, found in described.items()}


def _role(found: list[tuple[str, int, float]]) -> GroupRole:
    kinds = {kind for kind, _, _ in found}
    large = [(kind, place) for kind, elements, place in found if not 0 <= elements <= SMALL_ELEMENTS]
    if kinds <= _PAIRWISE:
        return GroupRole.PAIRS
    if "all_to_all" in kinds:
        return GroupRole.EXCHANGES
    reducing = [place for kind, place in large if kind in _REDUCING]
    if not reducing:
        return GroupRole.SHARDS if any(kind == "all_gather" for kind, _ in large) else GroupRole.SMALL
    early = sum(0 <= place < _EARLY for place in reducing)
    if early > _SOME * len(reducing):
        return GroupRole.ACTIVATIONS
    shares = any(kind in ("all_gather", "reduce_scatter") for kind, _ in large)
    return GroupRole.SHARDS if shares else GroupRole.REPLICAS


def _place_in_iteration(iteration: Int64s) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The share of an iteration's rows that are before each row, which are in launch order; -1 outside iterations."""
    inside = iteration >= 0
    counts = np.bincount(iteration[inside]) if inside.any() else np.zeros(1, np.int64)
    first = np.full(len(counts), len(iteration), np.int64)
    np.minimum.at(first, iteration[inside], np.flatnonzero(inside))
    at = np.maximum(iteration, 0)
    return np.where(inside, (np.arange(len(iteration)) - first[at]) / np.maximum(counts[at], 1), -1.0)


def _components(count: int, groups: list[frozenset[int]]) -> Int64s:
    """The number of each rank's replica: ranks that share a group are of one."""
    owner = list(range(count))
    for group in groups:
        least = min(owner[rank] for rank in group)
        joined = {owner[rank] for rank in group}
        owner = [least if one in joined else one for one in owner]
    return np.unique(np.array(owner, np.int64), return_inverse=True)[1]
