"""From samples of chains to one line of code: down the calls, as long as one function holds most of the time.

Guarantees: pure; ties go to the first by name.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Final, NamedTuple

from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.rank.host.track import Chain, Place

_SHARE: Final = 0.5


class Weight(NamedTuple):
    """Time of a chain, below 0 where others spend more of it there; and its variance, as samples tell it."""

    net: float
    variance: float = 0.0


@dataclass(frozen=True, slots=True)
class HotPath:
    """The functions, outermost first, that hold most of the time, each with the line of it that has the most.

    `net` is the time in the last of them, `lines` are those of each function that have a part in it.
    """

    places: list[Place]
    net: float
    lines: list[Collection[Place]]

    def holds(self, chain: Chain) -> bool:
        """Tells whether a sample of this chain belongs to it."""
        return len(chain) >= len(self.lines) and all(
            place in lines for place, lines in zip(chain, self.lines, strict=False)
        )


@dataclass(slots=True)
class _Node:
    """A line that is called from another, with all that it calls."""

    net: float = 0.0
    variance: float = 0.0
    below: dict[Place, "_Node"] = field(default_factory=dict)
    weight: float = 0.0

    def weigh(self, deviations: float) -> float:
        """The weight that it has beyond chance, by itself or where parts below it outweigh each other."""
        for node in self.below.values():
            node.weigh(deviations)
        parts = sum(node.weight for node in self.below.values())
        self.weight = max(self.net - deviations * sqrt(self.variance), parts, 0.0)
        return self.weight


def find_hot_path(weights: Mapping[Chain, Weight], deviations: float = 0.0) -> HotPath | None:
    """Down the calls; what is less than so many standard deviations of its weight counts as nothing."""
    root = _Node()
    for chain, weight in weights.items():
        node = root
        for place in chain:
            node = node.below.setdefault(place, _Node())
            node.net += weight.net
            node.variance += weight.variance
    root.weigh(deviations)
    level, whole, found = root.below, 0.0, None
    places: list[Place] = []
    lines: list[Collection[Place]] = []
    while True:
        functions: dict[tuple[str, str], float] = defaultdict(float)
        for (file, function, _), node in level.items():
            functions[file, function] += node.weight
        whole = whole or sum(functions.values())
        hottest = max(sorted(functions), key=functions.__getitem__, default=("", ""))
        if whole <= 0 or functions[hottest] < _SHARE * whole:
            return found
        mine = {line: node for line, node in level.items() if line[:2] == hottest and node.weight > 0}
        places.append(max(sorted(mine), key=lambda line: mine[line].weight))
        lines.append(set(mine))
        found = HotPath(list(places), sum(max(node.net, 0.0) for node in mine.values()), list(lines))
        level = _join([node.below for node in mine.values()])


def _join(parts: Iterable[Mapping[Place, _Node]]) -> dict[Place, _Node]:
    joined: dict[Place, _Node] = {}
    for part in parts:
        for place, node in part.items():
            other = joined.get(place)
            if other is None:
                joined[place] = node
                continue
            below = _join([other.below, node.below])
            joined[place] = _Node(
                other.net + node.net, other.variance + node.variance, below, other.weight + node.weight
            )
    return joined


def find_place(samples: Iterable[tuple[Chain, int]], least: int) -> PlaceInCode | None:
    """The place with most of the samples' time; None of fewer than `least` samples. `samples`: track.within."""
    weights: dict[Chain, Weight] = {}
    counted = []
    for chain, lasted in samples:
        weights[chain] = Weight(weights.get(chain, Weight(0)).net + lasted)
        counted.append(chain)
    path = find_hot_path(weights) if len(counted) >= least else None
    return None if path is None else describe(path, counted)


def describe(path: HotPath, counted: Collection[Chain]) -> PlaceInCode:
    """The end of a hot path as the report has it; `counted`: the chain of every sample that may be there."""
    file, function, line = path.places[-1]
    here = sum(path.holds(chain) for chain in counted)
    return PlaceInCode(file=file, line=line, function=function, samples=here, of_samples=len(counted))
