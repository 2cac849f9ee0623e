"""Finds slow links and uneven work under the reading of the hosts that tells them.

Where hosts may have waited unseen, their launches hold up the replay of a faster link or a lighter stage. Then the
transfers, the work of devices, loading and collection are read again with gaps as own time: a trace says for certain
how long these took. Guarantees: pure.
"""

from dataclasses import dataclass

from fleetprof_analyzer.job.stragglers.imbalance import Imbalance, find_imbalance
from fleetprof_analyzer.job.stragglers.network import Links, find_slow_links
from fleetprof_analyzer.job.stragglers.search.readings import Agreed
from fleetprof_analyzer.job.stragglers.search.search import Search


@dataclass(frozen=True, slots=True)
class Groups:
    """Slow links and uneven work, and the reading that tells them."""

    search: Search
    links: Links
    imbalance: Imbalance

    @property
    def is_told(self) -> bool:
        """Tells whether it names something that is no gap of a host."""
        imbalance = self.imbalance
        heavy = imbalance.heaviest and imbalance.cause != "host"
        moves = imbalance.moves is not None and imbalance.moves != "host"
        return bool(self.links.slow) or bool(heavy) or moves


def find_groups(agreed: Agreed) -> Groups:
    """Reads links and work by the reading of the verdict, or by the other one where that says nothing, or less."""
    found = _read(agreed.search)
    if agreed.other is None:
        return found
    other = _read(agreed.other)
    if found.links.slow:
        # A wait that is not known holds up a faster link, and never makes it worth more.
        return other if other.links.gain > found.links.gain else found
    says_nothing = not (found.imbalance.heaviest or found.imbalance.moves)
    return other if says_nothing and other.is_told else found


def _read(search: Search) -> Groups:
    replay, table = search.replay, search.table
    return Groups(search, find_slow_links(replay, table.role), find_imbalance(replay, table))
