"""The number of streams that one pod, and all pods of one namespace, may have at a time, and how often a pod may dial.

Guarantees: pure, time is passed in (seconds); whoever no token proves (local mode: all calls are one user's) has no
bound here. One pod has one sidecar, hence one stream, and for a moment the one that takes its place.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fleetprof_api.errors import FleetprofError

from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_operator.hub.access.call_refusals import CallRefusal

MOST_OF_POD: Final = 3
DIALS_AT_ONCE: Final = 20  # of one pod
DIALS_PER_S: Final = 0.5
_MOST_PODS: Final = 20_000


class NoSeat(FleetprofError):
    """No stream for this pod now; `kind` and the sentence say why."""

    def __init__(self, kind: CallRefusal, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class StreamSeats:
    """The streams by pod and namespace."""

    def __init__(self, max_per_namespace: int) -> None:
        self._max_per_namespace = max_per_namespace
        self._of_pod = Counter[str]()
        self._of_namespace = Counter[str]()
        self._dials: OrderedDict[str, TokenBucket] = OrderedDict()

    @contextmanager
    def take(self, principal: Principal, now_s: float) -> Iterator[None]:
        """A seat while the block runs. Raises NoSeat."""
        pod, namespace = principal.pod_uid or "", principal.namespace or ""
        self._check(pod, namespace, now_s)
        self._of_pod[pod] += 1
        self._of_namespace[namespace] += 1
        try:
            yield
        finally:
            for counter, key in ((self._of_pod, pod), (self._of_namespace, namespace)):
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]

    def _check(self, pod: str, namespace: str, now_s: float) -> None:
        if pod:
            bucket = self._dials.setdefault(pod, TokenBucket(DIALS_AT_ONCE, DIALS_PER_S, now_s))
            self._dials.move_to_end(pod)
            if len(self._dials) > _MOST_PODS:
                self._dials.popitem(last=False)
            if not bucket.take_if_there(1, now_s):
                raise NoSeat(CallRefusal.OFTEN, f"the pod dials more than {DIALS_PER_S:g} times per second; wait")
            if self._of_pod[pod] >= MOST_OF_POD:
                raise NoSeat(CallRefusal.STREAMS, f"the pod has {MOST_OF_POD} streams; a pod has one sidecar")
        if namespace and self._of_namespace[namespace] >= self._max_per_namespace:
            message = f"namespace {namespace} has {self._max_per_namespace} streams, as many as one may have"
            raise NoSeat(CallRefusal.STREAMS, message)
