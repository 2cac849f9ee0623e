"""Holds the Leases of a release for this process, or waits until it may.

Guarantees: Leases are taken in one order, so two releases with several namespaces never wait for each other. Who finds
another's name in a Lease that was its own serves no more (`Deposed`), and who cannot renew one ends before another may
take it, also where it does not reach the API server: it cannot know that nobody else does. A Lease that is not there
any more is nobody's to take. An orderly end frees the Leases at once. Rights: get and patch of the Lease `fleetprof` in
the namespaces that are given.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.process.address import HostPort, parse_host_port
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.ownership.lease import (
    LEASE,
    LOST_S,
    RENEW_S,
    TRY_S,
    Holder,
    ObservedLease,
    build_claim,
    build_release,
    is_free,
    lease_path,
    look,
    read_holder,
)

log = logging.getLogger(__name__)

SOON_S: Final = 0.5
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


class Deposed(FleetprofError):
    """Another process holds what was ours, or may."""


class Leadership:
    """Let `run` run; `held` is set once this process serves. Until then `first` is who does, as far as it is known.

    `find_own_trouble` is what the Lease says of its holder.
    """

    def __init__(self, cluster: Cluster, namespaces: Sequence[str], me: Holder) -> None:
        self._cluster = cluster
        self._namespaces = sorted(namespaces)
        self._me = me
        self._sights: dict[str, ObservedLease] = {}
        self._renewed_s: dict[str, float] = {}  # of each namespace that is ours, on the monotonic clock
        self._trouble = ""
        self.find_own_trouble: Callable[[], str] = lambda: ""
        self.first: Holder | None = None
        self.held = asyncio.Event()

    def find_obstacle(self) -> str:
        """The reason why this process neither serves nor stands by for one of its own release; "" when it does."""
        if self.held.is_set() or self.first_hub():
            return ""
        if self.first is not None:
            return f"the release {self.first.owner} serves here: uninstall one of the two ({self._trouble})"
        return self._trouble or f"waiting for the Lease {LEASE}"

    def first_hub(self) -> HostPort | None:
        """The address of the hub of the process that serves in our place; None when none of our release does."""
        if self.first is None or self.first.owner != self._me.owner:
            return None
        try:
            return parse_host_port(self.first.hub, least_port=1)
        except ValueError:  # it tells no address
            return None

    async def run(self) -> None:
        """Until cancelled. Raises Deposed."""
        while True:
            if self.held.is_set():
                await asyncio.gather(*map(self._claim, self._namespaces))
            else:
                for namespace in self._namespaces:
                    if not await self._claim(namespace):
                        break
            if len(self._renewed_s) == len(self._namespaces) and not self.held.is_set():
                self.first, self._trouble = None, ""
                self.held.set()
                log.info("this process serves: it holds the Lease %s in %s", LEASE, ", ".join(self._namespaces))
            await asyncio.sleep(RENEW_S if self.held.is_set() else SOON_S)

    async def let_go(self) -> None:
        """Frees what this process holds; the next process takes it at once. What fails expires by itself."""
        await asyncio.gather(*map(self._free, self._renewed_s))
        self._renewed_s.clear()

    def count_age_s(self) -> float:
        """The time since the Lease was renewed that was renewed longest ago; 0 while this process does not serve."""
        renewed = self._renewed_s.values() if self.held.is_set() else ()
        return time.monotonic() - min(renewed, default=time.monotonic())

    async def _free(self, namespace: str) -> None:
        path = lease_path(namespace)
        try:
            async with asyncio.timeout(TRY_S):
                lease = await self._cluster.get(path)
                if read_holder(lease) == self._me:
                    await self._cluster.merge(path, build_release(lease))
        except (ApiRefused, ApiUnreachable, TimeoutError) as error:
            log.warning("the Lease in %s cannot be freed: %s", namespace, error)

    async def _claim(self, namespace: str) -> bool:
        """Tells whether the Lease is ours after this try. Raises Deposed."""
        path, ours = lease_path(namespace), namespace in self._renewed_s
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(TRY_S):
                lease = await self._cluster.get(path)
                now_ns = time.monotonic_ns()
                observed = self._sights[namespace] = look(lease, self._sights.get(namespace, ObservedLease()), now_ns)
                holder = read_holder(lease)
                if not is_free(lease, self._me, observed, now_ns):
                    self._give_way(namespace, holder, ours=ours)
                    return False
                await self._cluster.merge(path, build_claim(lease, self._me, time.time_ns(), self.find_own_trouble()))
        except (ApiRefused, ApiUnreachable, TimeoutError) as error:
            status = error.status if isinstance(error, ApiRefused) else 0
            if status != _CONFLICT:  # else the next look tells whose it is
                problem = {_NOT_FOUND: "it is not there; the chart makes it"}.get(status) or str(error) or "no answer"
                self._say(f"the Lease {LEASE} in {namespace}: {problem}")
            if ours and status == _NOT_FOUND:
                self._renewed_s[namespace] = began_s
            elif ours and (age_s := time.monotonic() - self._renewed_s[namespace]) >= LOST_S:
                self._renewed_s.clear()
                raise Deposed(
                    f"for {age_s:.0f} s the Lease could not be renewed, and others may serve; {self._trouble}"
                ) from None
            return ours
        self._renewed_s[namespace] = began_s
        return True

    def _give_way(self, namespace: str, holder: Holder | None, *, ours: bool) -> None:
        assert holder is not None
        if ours:
            self._renewed_s.pop(namespace, None)
            raise Deposed(f"{holder.identity} of {holder.owner} holds the Lease {LEASE} in {namespace}")
        self.first = holder
        self._say(f"{holder.identity} of {holder.owner} holds the Lease {LEASE} in {namespace}")

    def _say(self, trouble: str) -> None:
        if trouble != self._trouble:
            log.info("%s", trouble)
        self._trouble = trouble
