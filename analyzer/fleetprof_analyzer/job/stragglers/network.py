"""Finds slow links: groups whose transfers take longer than those of their sister groups.

A transfer (the shortest duration over the members) holds no waiting, so it compares networks alone. Sister groups do
the same at the same place of the program: the data-parallel groups of one stage, the pairs of two stages. Guarantees:
a group without sisters is never judged; a rank is named only where several slow groups meet in it.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import FEWEST, LEAST, OUTLIER, SIGMA
from fleetprof_analyzer.trace.trace import Int64s

_LEAST_SPREAD: Final = 0.08
_LEAST_FACTOR: Final = 1.3
_ANY_STAGE: Final = "any stage"

_Group = tuple[int, tuple[int, ...]]  # kind and members


@dataclass(frozen=True, slots=True)
class SlowGroup:
    """A slow group: its ranks (positions), how many times longer its transfers take, over how many operations."""

    members: tuple[int, ...]
    factor: float
    operations: int
    kind: int
    transfer_ns: int  # mean
    sisters_ns: int  # median of the sisters


@dataclass(frozen=True, slots=True)
class Links:
    """`ranks` (positions) where slow groups meet; empty where one group alone is slow.

    `judged`: there were sisters; `denied`: slow groups that would cost enough are worth nothing in the replay.
    """

    slow: list[SlowGroup]
    ranks: list[int]
    gain: float
    lateness_ns: int
    judged: bool
    denied: bool = False


def find_slow_links(replay: Replay, role: Int64s) -> Links:
    """Compares every collective with those of its sister groups in the same iteration and at the same place."""
    deviations: dict[_Group, list[tuple[float, int, float]]] = defaultdict(list)
    beside: dict[_Group, list[dict[tuple[int, ...], float]]] = defaultdict(list)
    judged = False
    for (_, kind), collectives in _sister_operations(replay, role).items():
        if len(collectives) < 2:
            continue
        judged = True
        transfers = {members: float(replay.transfer_ns[number]) for number, members in collectives}
        for number, members in collectives:
            others = float(np.median([of for sister, of in transfers.items() if sister != members]))
            if others > 0 and transfers[members] > 0:
                deviations[kind, members].append((float(np.log(transfers[members] / others)), number, others))
                beside[kind, members].append(transfers)
    if not deviations:
        return Links([], [], 0.0, 0, judged)
    middle = {key: float(np.median([value for value, _, _ in found])) for key, found in deviations.items()}
    slow = [key for key, value in middle.items() if _is_slow(key, value, beside[key])]
    if not slow:
        return Links([], [], 0.0, 0, judged)
    transfer = replay.transfer_ns.copy()
    for key in slow:
        for _, number, others in deviations[key]:
            transfer[number] = min(int(transfer[number]), round(others))
    measured = replay.as_measured()
    outcome = replay.run([measured, replace(measured, transfer_ns=transfer)])
    gain = float((outcome.total_ns[0] - outcome.total_ns[1]) / max(int(outcome.total_ns[0]), 1))
    if gain < LEAST:
        longer_ns = max(
            sum(replay.transfer_ns[number] - others for _, number, others in deviations[key]) for key in slow
        )
        return Links([], [], gain, 0, judged, denied=float(longer_ns) >= LEAST * int(outcome.total_ns[0]))
    groups = [
        SlowGroup(
            members,
            float(np.exp(middle[kind, members])),
            len(deviations[kind, members]),
            kind,
            round(float(np.mean([replay.transfer_ns[number] for _, number, _ in deviations[kind, members]]))),
            round(float(np.mean([others for _, _, others in deviations[kind, members]]))),
        )
        for kind, members in slow
    ]
    saved = (outcome.blocked_ns[:, 0] - outcome.blocked_ns[:, 1]).mean() / max(len(replay.matched.iterations), 1)
    groups.sort(key=lambda group: -group.factor)
    return Links(groups, _culprits(groups), gain, max(round(float(saved)), 0), judged)


def _sister_operations(
    replay: Replay, role: Int64s
) -> dict[tuple[tuple[object, ...], int], list[tuple[int, tuple[int, ...]]]]:
    """(family, kind) -> [(collective, members)]; a family is roles, size, place of the program and iteration.

    A group that is the only one of its stage has its sisters in the other stages: those that pass as much on, the n-th
    time in the iteration. Whoever does not say how much has none there.
    """
    layout = replay.layout
    kinds, elements = replay.gather("kind"), replay.gather("elements")
    captured = np.flatnonzero(replay.is_captured)
    order = captured[np.argsort(layout.collective[captured], kind="stable")]
    cuts = np.flatnonzero(np.diff(layout.collective[order], prepend=-1))
    found: dict[tuple[tuple[object, ...], int], list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    alike: dict[tuple[tuple[object, ...], int], tuple[object, ...]] = {}
    times: Counter[tuple[object, ...]] = Counter()
    for here in sorted(np.split(order, cuts[1:]), key=lambda members: int(members[0]) if len(members) else -1):
        number = int(layout.collective[here[0]])
        if number >= replay.matched.count or not replay.matched.whole[number] or len(here) < 2:
            continue
        first = here[0]
        if replay.program_position[first] < 0:
            continue
        roles = tuple(role[layout.rank[here]].tolist())
        at = int(replay.iteration[first])
        members, kind = tuple(layout.rank[here].tolist()), int(kinds[first])
        family = (roles, len(here), int(replay.program_position[first]), at)
        found[family, kind].append((number, members))
        traffic = (kind, members, int(elements[first]), at)
        times[traffic] += 1
        if len(set(roles)) == 1 and elements[first] >= 0:
            alike[family, kind] = (_ANY_STAGE, len(here), int(elements[first]), times[traffic], at)
    for key, stages in alike.items():
        if len(found[key]) == 1:
            found[stages, key[1]] += found.pop(key)
    return found


def _is_slow(key: _Group, value: float, beside: list[dict[tuple[int, ...], float]]) -> bool:
    """Tells whether a group stands out of its sisters by far more than these differ among themselves.

    `beside`: the transfers by members, each time that it met them. It is left out of its own measure, because beside it
    each of few sisters seems fast.
    """
    if value <= float(np.log(_LEAST_FACTOR)) or len(beside) < FEWEST:
        return False
    beyond: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for transfers in beside:
        sisters = {members: of for members, of in transfers.items() if members != key[1] and of > 0}
        usual = float(np.median([*sisters.values()]))
        for members, of in sisters.items():
            beyond[members].append(float(np.log(of / usual)))
    deviation = SIGMA * float(np.median([abs(float(np.median(of))) for of in beyond.values()]))
    return value > OUTLIER * max(deviation, _LEAST_SPREAD)


def _culprits(groups: list[SlowGroup]) -> list[int]:
    """Ranks where several slow groups meet: in all of them, else in the most."""
    distinct = {group.members for group in groups}
    if len(distinct) < 2:
        return []
    count: dict[int, int] = defaultdict(int)
    for members in distinct:
        for rank in members:
            count[rank] += 1
    most = max(count.values())
    return sorted(rank for rank, times in count.items() if times == most) if most > 1 else []
