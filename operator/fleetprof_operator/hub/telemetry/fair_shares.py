"""Fair shares where not all can be told: every namespace in turn, so that one tenant's thousand jobs hide nobody's one.

Guarantees: pure; the order within a namespace stays; a namespace that has few is told whole, as long as any is.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def share_fairly(items: Sequence[T], namespace: Callable[[T], str], most: int) -> list[T]:
    """At most so many of the items, in their order: the first of each namespace, then the second, and so on."""
    if len(items) <= most:
        return list(items)
    of_namespace: dict[str, int] = {}
    turns = []
    for place, item in enumerate(items):
        turn = of_namespace.get(namespace(item), 0)
        of_namespace[namespace(item)] = turn + 1
        turns.append((turn, place))
    return [items[place] for place in sorted(place for _, place in sorted(turns)[:most])]
