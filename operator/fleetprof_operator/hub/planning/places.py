"""Places: how many captures may be under way at a time, who comes next, and how many requests may wait for their job.

A place is held from a request's first order to its end. A request whose job is not there holds none, however long it
waits: where jobs are queued (Kueue) that is normal use.

Guarantees: pure; of a namespace the oldest request comes first, and of namespaces the one that holds fewest places; a
namespace may have some requests waiting however many others have.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

ALWAYS: Final = 20
"""So many requests of a namespace may wait, however many wait in all."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A request that is ready for its capture. `key` orders those of one namespace."""

    uid: str
    namespace: str
    key: tuple[int, str]


@dataclass(frozen=True, slots=True)
class NoPlace:
    """The reason why a request waits for a place, and the number of those before it and itself."""

    position: int
    message: str


def order_contenders(held: Mapping[str, int], contenders: Iterable[Contender], most_of_namespace: int) -> Sequence[str]:
    """The uids of those whose namespace has room, in the order in which they get places. `held`: by namespace."""
    counts = Counter(held)
    order: list[tuple[int, tuple[int, str], str]] = []
    for contender in sorted(contenders, key=lambda c: c.key):
        counts[contender.namespace] += 1
        if counts[contender.namespace] <= most_of_namespace:
            order.append((counts[contender.namespace], contender.key, contender.uid))
    return [uid for _, _, uid in sorted(order)]


def explain(
    contender: Contender, held: Mapping[str, int], contenders: Iterable[Contender], line: Sequence[str], most: int
) -> NoPlace | None:
    """The reason that keeps this one from its place; None where nothing does."""
    total = sum(held.values())
    if contender.uid not in line:
        before = sum(c.namespace == contender.namespace and c.key < contender.key for c in contenders)
        of_namespace = held.get(contender.namespace, 0)
        message = f"{of_namespace} captures of namespace {contender.namespace} are under way"
        return NoPlace(before + 1, message)
    place = line.index(contender.uid)
    return None if total + place < most else NoPlace(place + 1, f"{total} captures are under way")


def find_crowd(waiting: Mapping[str, int], namespace: str, most: int, most_of_namespace: int) -> str:
    """The reason why one more request of a namespace may not wait; "": it may. `waiting`: how many do, by namespace."""
    of_namespace, total = waiting.get(namespace, 0), sum(waiting.values())
    if of_namespace >= most_of_namespace:
        return f"{of_namespace} requests of namespace {namespace} wait for their jobs or their turn"
    return f"{total} requests wait for their jobs or their turn" if total >= most and of_namespace >= ALWAYS else ""
