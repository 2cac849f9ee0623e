"""The health of the operator itself: whether it stalls, and whether its store works; for probes, metrics and its Lease.

Guarantees: readiness follows from what concerns every tenant alike. A request whose status nobody can write is told,
and is no reason: one team's policy could else take the hub from all.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fleetprof_operator.hub.storage.store_probe import StoreProbe
from fleetprof_operator.ownership.leadership import Leadership

STALLED_LOOP_S: Final = 5.0
STALLED_QUEUE_S: Final = 120.0
_BEAT_S: Final = 1.0
_REMEMBERED: Final = 60  # beats: the worst of a minute is told


class Health(Collector):
    """Let `run` run. `count_queue_age_s`: for how long the request has been seen that waits longest for its state."""

    def __init__(
        self, leadership: Leadership | None, store: StoreProbe, count_queue_age_s: Callable[[], float]
    ) -> None:
        self._leadership = leadership
        self._store = store
        self._count_queue_age_s = count_queue_age_s
        self._lags_s = deque([0.0], _REMEMBERED)
        self.serves = False

    async def run(self) -> None:
        """Measures how late the event loop is, until cancelled."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(_BEAT_S)
            self._lags_s.append(max(0.0, time.monotonic() - began - _BEAT_S))

    def find_stall(self) -> str:
        """The reason why this process is slow to do anything for anybody; "" when it is not."""
        if (lag_s := max(self._lags_s)) >= STALLED_LOOP_S:
            return f"the operator stalls: within a minute its event loop stood still for {lag_s:.0f} s"
        return ""

    def find_trouble(self) -> str:
        """The trouble of the operator, for people who ask; "" when all is well."""
        queue_age_s = self._count_queue_age_s()
        store, stall = self._store.trouble, self.find_stall()
        sentences = [
            stall,
            store and f"the object store cannot be used: {store}",
            f"a request has no state since {queue_age_s:.0f} s" if queue_age_s >= STALLED_QUEUE_S else "",
        ]
        return "; ".join(filter(None, sentences))

    def collect(self) -> Iterator[Metric]:
        """The figures of each scrape. A replica that stands by neither holds a Lease nor uses the store."""
        yield GaugeMetricFamily("fleetprof_operator_serves", "Whether this replica serves.", value=self.serves)
        lag_s = max(self._lags_s)
        yield GaugeMetricFamily("fleetprof_event_loop_lag_seconds", "Its longest pause within a minute.", value=lag_s)
        if self._leadership is not None and self._leadership.held.is_set():
            age_s = self._leadership.count_age_s()
            yield GaugeMetricFamily("fleetprof_lease_age_seconds", "Since the Lease was renewed.", value=age_s)
        queue_age_s = self._count_queue_age_s()
        help_text = "For how long a request has been seen that has no state yet; 0: there is none."
        yield GaugeMetricFamily("fleetprof_requests_unanswered_seconds", help_text, value=queue_age_s)
        if self._store.tried:
            works = not self._store.trouble
            yield GaugeMetricFamily("fleetprof_store_usable", "Whether the store took the last probe.", value=works)
