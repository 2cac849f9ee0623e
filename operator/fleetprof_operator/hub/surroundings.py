"""What a capture needs of its hub, so that it knows no hub: the store, the sidecars, bounds, time and the analyzer.

Guarantees: one object for all captures of a hub, never changed.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fleetprof_operator.hub.registry import Registry
from fleetprof_operator.hub.resolution import RankTarget
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.store_calls import StoreCalls

Analyze = Callable[[str, str], Awaitable[None]]  # of a namespace and a uid; raises when it cannot


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a capture needs of its hub."""

    calls: StoreCalls
    registry: Registry
    settings: HubSettings
    clock: Callable[[], int]
    analyze: Analyze | None
    find_holder: Callable[[Sequence[RankTarget]], str]  # which unfinished request holds one of these, as a sentence
