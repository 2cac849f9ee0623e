"""Events from the threads that must not wait to the subscribers that may: queued by one, handed out by another.

Guarantees: thread-safe; in order; nobody is called while an event is put in; when far too many wait the oldest are
dropped, and counted as events_lost.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MAX_WAITING: Final = 65536

_Event = TypeVar("_Event")


class EventQueue(Generic[_Event]):
    """`counters` gets events_lost and subscriber_errors."""

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self._lock = threading.Lock()
        self._events: deque[_Event] = deque(maxlen=MAX_WAITING)
        self._subscribers: list[Callable[[_Event], None]] = []
        self._wake: Callable[[], None] = lambda: None

    def subscribe(self, callback: Callable[[_Event], None]) -> None:
        """Calls back with every later event, from the thread that dispatches."""
        with self._lock:
            self._subscribers.append(callback)

    def attach_wake(self, wake: Callable[[], None]) -> None:
        """Sets what is called when an event waits; it must not block."""
        with self._lock:
            self._wake = wake

    def put(self, event: _Event) -> None:
        """Has it handed out."""
        with self._lock:
            if len(self._events) == MAX_WAITING:
                self._counters["events_lost"] += 1
            self._events.append(event)
            wake = self._wake
        wake()

    def dispatch(self) -> int:
        """Calls the subscribers with all that waits; returns how many events there were.

        A subscriber that raises is counted and called again with the next event.
        """
        count = 0
        while True:
            with self._lock:
                if not self._events:
                    return count
                event = self._events.popleft()
                subscribers = list(self._subscribers)
            count += 1
            for subscriber in subscribers:
                try:
                    subscriber(event)
                except Exception:
                    self._counters["subscriber_errors"] += 1
