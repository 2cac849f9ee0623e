"""Breaks the circles in which operations seem to wait for each other, which a real job cannot do.

What a trace tells for certain is the order of launches; where a chain waits, and what an operation stands behind, is
concluded. So in a circle these conclusions are given up: first that chains wait for their sends, then those in the
circle. Guarantees: pure.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from fleetprof_api.errors import FleetprofError

from fleetprof_analyzer.job.stragglers.replay.graph.order import Step, Stuck, order
from fleetprof_analyzer.job.stragglers.replay.partners.matched import Matched
from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout, gather_rows, lay_out
from fleetprof_analyzer.rank.communication.operations import KINDS, SYNCHRONISING
from fleetprof_analyzer.trace.trace import Bools

# A send ends when its receiver takes it, often while its own chain waits for something else: it seems to hold that up.
_SEND: Final = KINDS.index("send")
# Who is let go first: pairs, then what a member may leave before the last has come.
_LET_GO: Final = tuple(
    frozenset(map(KINDS.index, kinds))
    for kinds in (("receive", "send_receive"), set(KINDS) - SYNCHRONISING, KINDS)
)  # fmt: skip
_MOST_ROUNDS: Final = 60
_SINGLE_ROUNDS: Final = 20  # then what is let go is so on all ranks, because large jobs repeat their circles


class Circular(FleetprofError):
    """The matched operations wait for each other in a circle."""


def plan(matched: Matched) -> tuple[ReplayLayout, list[Step]]:
    """Raises Circular."""
    layout = lay_out(matched)
    found = order(layout)
    if not isinstance(found, Stuck):
        return layout, found
    kind, group, peer = (
        gather_rows([getattr(one.columns, name) for one in matched.ranks], layout) for name in ("kind", "group", "peer")
    )
    demoted, loose = kind == _SEND, np.zeros(len(kind), np.bool_)
    for number in range(_MOST_ROUNDS):
        layout = _without_order(lay_out(matched, demoted), loose)
        found = order(layout)
        if not isinstance(found, Stuck):
            return layout, found
        circle = _circle(layout, found)
        if not circle:
            loose |= ~np.array(found.ended, np.bool_)[layout.collective]
            continue
        blocking = layout.mark_operation[[found.at[rank] for rank in circle]]
        chosen = next(here for kinds in _LET_GO if len(here := blocking[np.isin(kind[blocking], list(kinds))]))
        if number >= _SINGLE_ROUNDS:
            demoted |= np.isin(kind, kind[chosen])
            continue
        for one in chosen:
            same = (layout.rank == layout.rank[one]) & (kind == kind[one])
            demoted |= same & (group == group[one]) & (peer == peer[one])
    raise Circular


def _without_order(layout: ReplayLayout, loose: Bools) -> ReplayLayout:
    """Operations that are `loose` wait for none before them on their streams."""
    if not loose.any():
        return layout
    previous, behind, *beside = (np.where(loose, -1, earlier) for earlier in layout.earlier)
    return replace(layout, previous=previous, behind=behind, beside_previous=tuple(beside))


def _circle(layout: ReplayLayout, stuck: Stuck) -> list[int]:
    """Ranks that wait for each other in a circle; none where only the order on streams contradicts itself."""
    members: dict[int, list[int]] = {}
    for operation in np.flatnonzero(~np.array(stuck.ended, np.bool_)[layout.collective]).tolist():
        members.setdefault(int(layout.collective[operation]), []).append(operation)
    earlier = [one.tolist() for one in layout.earlier]

    def awaited(rank: int) -> int | None:
        """A rank that has not launched what `rank` waits for, by itself or before it on a stream."""
        met: set[int] = set()
        stack = [int(layout.collective[layout.mark_operation[stuck.at[rank]]])]
        while stack:
            number = stack.pop()
            if number in met or stuck.ended[number]:
                continue
            met.add(number)
            for member in members[number]:
                if not stuck.passed[member]:
                    return int(layout.rank[member])
                stack += [int(layout.collective[of[member]]) for of in earlier if of[member] >= 0]
        return None

    for first in (rank for rank, mark in enumerate(stuck.at) if mark >= 0):
        path: list[int] = []
        rank: int | None = first
        while rank is not None and rank not in path:
            path.append(rank)
            rank = awaited(rank)
        if rank is not None:
            return path[path.index(rank) :]
    return []
