"""The order in which requests are worked on: who asks for much waits while those who ask for little are served.

Guarantees: pure but for the futures, with the time passed in. Of one caller at most MOST_AT_ONCE requests are worked on
at once. A caller who has used up ALLOWANCE_S shares one place with all others like that, each in turn: who asks for one
page after the other never does. No more than MOST_WAITING of one caller wait, and MOST_OF_ALL of all.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fleetprof_api.errors import FleetprofError

MOST_AT_ONCE: Final = 6  # a browser opens as many connections to one host
ALLOWANCE_S: Final = 2.0  # of work; each second in which nothing of the caller waits gives one back
MOST_WAITING: Final = 64
MOST_OF_ALL: Final = 1024
_MOST_SPENT_S: Final = 8 * ALLOWANCE_S  # so that a minute's rest is enough, however long it went on
_MOST_CALLERS: Final = 4096


class TooManyWait(FleetprofError):
    """A request beyond those that may wait."""


@dataclass(slots=True)
class _Caller:
    spent_s: float = 0.0
    at_s: float = 0.0  # the time of which `spent_s` is
    at_work: int = 0
    waiting: deque[asyncio.Future["Turn"]] = field(default_factory=deque)


@dataclass(slots=True)
class Turn:
    """A request that is worked on."""

    caller: str
    began_s: float
    is_in_shared_place: bool


class Turns:
    """The requests of all callers of one service. Call it in one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: OrderedDict[str, _Caller] = OrderedDict()
        self._queue: OrderedDict[str, _Caller] = OrderedDict()  # those of whom requests wait, whose turn is next first
        self._waiting = 0
        self._is_shared_place_taken = False

    async def take(self, name: str) -> Turn:
        """Returns once a request of this caller may be worked on. Raises TooManyWait."""
        caller = self._find(name)
        if not caller.waiting and (turn := self._start(name, caller)) is not None:
            return turn
        if len(caller.waiting) >= MOST_WAITING or self._waiting >= MOST_OF_ALL:
            raise TooManyWait
        place = asyncio.get_running_loop().create_future()
        caller.waiting.append(place)
        self._queue.setdefault(name, caller)
        self._waiting += 1
        try:
            return await place  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.end(place.result())
            elif place in caller.waiting:
                caller.waiting.remove(place)
                self._left_queue(name, caller)
            raise

    def end(self, turn: Turn) -> None:
        """Counts what it took, and lets those go on whose turn it is."""
        caller = self._callers[turn.caller]
        caller.at_work -= 1
        self._is_shared_place_taken &= not turn.is_in_shared_place
        self._let_come_back(caller)
        caller.spent_s = min(_MOST_SPENT_S, caller.spent_s + caller.at_s - turn.began_s)
        if turn.caller in self._queue:
            self._queue.move_to_end(turn.caller)
        for name, each in list(self._queue.items()):
            while each.waiting:
                place = each.waiting[0]
                if not place.cancelled():
                    next_turn = self._start(name, each)
                    if next_turn is None:
                        break
                    place.set_result(next_turn)
                # A place that was just cancelled, whose request has not noticed yet, goes as well.
                each.waiting.popleft()
                self._left_queue(name, each)

    def _start(self, name: str, caller: _Caller) -> Turn | None:
        self._let_come_back(caller)
        shares = caller.spent_s > ALLOWANCE_S
        if caller.at_work >= (1 if shares else MOST_AT_ONCE) or (shares and self._is_shared_place_taken):
            return None
        caller.at_work += 1
        self._is_shared_place_taken |= shares
        return Turn(name, caller.at_s, shares)

    def _left_queue(self, name: str, caller: _Caller) -> None:
        self._waiting -= 1
        if not caller.waiting:
            del self._queue[name]

    def _let_come_back(self, caller: _Caller) -> None:
        now = self._clock()
        if not caller.waiting:
            caller.spent_s = max(0.0, caller.spent_s - (now - caller.at_s))
        caller.at_s = now

    def _find(self, name: str) -> _Caller:
        if name not in self._callers and len(self._callers) >= _MOST_CALLERS:
            idle = [each for each, caller in self._callers.items() if not caller.at_work and not caller.waiting]
            for each in idle[: _MOST_CALLERS // 2]:
                del self._callers[each]
        return self._callers.setdefault(name, _Caller(at_s=self._clock()))
