"""Events from the threads that must not wait to the subscribers that may: queued by one thread, handed out by another.

Guarantees: thread-safe; in order; nobody is called while an event is put in; when far too many events wait, the oldest
are dropped and counted as events_lost.
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
        self._news = threading.Event()

    def subscribe(self, callback: Callable[[_Event], None]) -> None:
        """Calls back with every later event, from the thread that dispatches."""
        with self._lock:
            self._subscribers.append(callback)

    def put(self, event: _Event) -> None:
        """Has it handed out."""
        with self._lock:
            if len(self._events) == MAX_WAITING:
                self._counters["events_lost"] += 1
            self._events.append(event)
        self._news.set()

    def wait(self, timeout_s: float) -> None:
        """Returns when an event was put in since the last wait, when `wake` was called, or after the timeout."""
        self._news.wait(timeout_s)
        self._news.clear()

    def wake(self) -> None:
        """Lets the thread that waits go on without an event."""
        self._news.set()

    def __len__(self) -> int:
        with self._lock:
            return len(self._events)

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
