"""A rank's samples by iteration, small enough for its summary, and what sets a late rank's apart from its peers'.

Guarantees: pure; bounded; nothing where samples are too few to tell.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec
from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.rank.host.hot_path import Weight, describe, find_hot_path
from fleetprof_analyzer.rank.host.track import Chain, Track, within

_MOST_PLACES: Final = 300
_MOST_ROWS: Final = 4096
_LEAST_SAMPLES: Final = 3
# Of the rank's time beyond its peers': less is what samples do by chance.
_LEAST_SHARE: Final = 0.25
_DEVIATIONS: Final = 1.0


class ThreadTimes(msgspec.Struct, frozen=True):
    """The places of the training thread in each iteration.

    `places` are (file, function, line), `chains` index them, the outermost frame first; `rows` are (position of the
    iteration, chain, samples, ns), and sum up what was sampled there.
    """

    places: list[tuple[str, str, int]] = []
    chains: list[list[int]] = []
    rows: list[tuple[int, int, int, int]] = []

    def chain(self, number: int) -> Chain:
        """A chain by its number; empty where that is none."""
        if not 0 <= number < len(self.chains):
            return ()
        return tuple(self.places[place] for place in self.chains[number] if 0 <= place < len(self.places))


def sum_up(track: Track | None, bounds: Sequence[tuple[int, int]]) -> ThreadTimes:
    """Sums up a rank's samples when it is compared with others. `bounds`: of its iterations, Unix ns."""
    if track is None:
        return ThreadTimes()
    places: dict[tuple[str, str, int], int] = {}
    chains: dict[Chain, int] = {}
    rows: dict[tuple[int, int], tuple[int, int]] = {}
    for position, span in enumerate(bounds):
        for chain, lasted in within(track, [span]):
            if chain not in chains and len({*places, *chain}) > _MOST_PLACES:
                continue
            for place in chain:
                places.setdefault(place, len(places))
            key = position, chains.setdefault(chain, len(chains))
            count, total = rows.get(key, (0, 0))
            rows[key] = count + 1, total + lasted
    return ThreadTimes(
        list(places),
        [[places[place] for place in chain] for chain in chains],
        [(*key, *both) for key, both in sorted(rows.items())][:_MOST_ROWS],
    )


def find_late_place(
    mine: ThreadTimes, peers: Sequence[ThreadTimes], iterations: Sequence[Sequence[int]], late_ns: float
) -> PlaceInCode | None:
    """The line of a rank while its peers are further: None where the samples do not tell.

    `iterations` holds, for the rank and then for each peer, the positions of the late iterations in its own list;
    `late_ns` is what the rank takes longer, per iteration. Peers that were not sampled do not count; without any, where
    the rank spends most of its time says nothing.
    """
    known = [(times, set(chosen)) for times, chosen in zip(peers, iterations[1:], strict=True) if times.rows and chosen]
    chosen = set(iterations[0])
    if not mine.rows or not known or not chosen:
        return None
    weights: dict[Chain, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    counted: list[Chain] = []

    def add(chain: Chain, count: int, lasted: float) -> None:
        net, variance = weights[chain]
        weights[chain] = net + lasted, variance + lasted**2 / max(count, 1)

    for position, number, count, lasted in mine.rows:
        if position in chosen:
            chain = mine.chain(number)
            add(chain, count, lasted / len(chosen))
            counted += [chain] * min(count, _MOST_ROWS)
    for times, here in known:
        for position, number, count, lasted in times.rows:
            if position in here:
                add(times.chain(number), count, -lasted / len(here) / len(known))
    path = find_hot_path({chain: Weight(*both) for chain, both in weights.items()}, _DEVIATIONS)
    if path is None or path.net < _LEAST_SHARE * late_ns:
        return None
    found = describe(path, counted)
    return found if found.samples >= _LEAST_SAMPLES else None
