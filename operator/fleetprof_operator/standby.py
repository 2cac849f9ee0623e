"""The replica that stands by: it hands callers on to the one that serves, until it serves itself.

Guarantees: sidecars and Alertmanager reach the hub through any replica; a process that lost its Leases ends.
"""

import asyncio
import logging
from contextlib import AsyncExitStack

from fleetprof_api.process.address import HostPort

from fleetprof_operator.hub.server import MOST_CONNECTIONS
from fleetprof_operator.ownership.leadership import Deposed, Leadership
from fleetprof_operator.ownership.relay import Relay
from fleetprof_operator.policies.control import MOST_CALLERS
from fleetprof_operator.settings import Settings

log = logging.getLogger(__name__)


class Standby:
    """One replica's wait for the Leases. `relay` is there while it stands by."""

    def __init__(self, settings: Settings, leadership: Leadership) -> None:
        self._settings = settings
        self._leadership = leadership
        self.relay: Relay | None = None

    async def wait(self) -> None:
        """Until this process serves; callers are handed on to the one that does."""
        leadership, alerts = self._leadership, self._settings.listen.alerts

        def find_receiver() -> HostPort | None:
            hub = leadership.first_hub()
            return hub and HostPort(hub.host, alerts.port)

        async with AsyncExitStack() as relays:
            self.relay = Relay(leadership.first_hub, most=MOST_CONNECTIONS)
            relays.push_async_callback(self.relay.close)
            if self._settings.alerts_token_file is not None:
                receiver = Relay(find_receiver, most=MOST_CALLERS)
                relays.push_async_callback(receiver.close)
                await receiver.start(alerts)
            await self.relay.start(self._settings.listen.hub)
            await leadership.held.wait()
        self.relay = None

    async def lead(self, stop: asyncio.Event) -> None:
        """Holds the Leases; ends the operator when another process has taken one."""
        try:
            await self._leadership.run()
        except Deposed as error:
            log.critical("this process ends, because another serves: %s", error)
            stop.set()
