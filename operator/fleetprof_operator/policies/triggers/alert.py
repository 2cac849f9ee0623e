"""Alertmanager has sent an alert about the job."""

from collections.abc import Iterator
from typing import Final

from fleetprof_api.policy import AlertTrigger

from fleetprof_operator.policies.triggers.watch import Detection, JobMoment, Watch

STALL_ALERT: Final = "FleetprofJobStalled"
"""The chart's own alert about a job that stands."""


class AlertWatch(Watch[AlertTrigger]):
    """Fires for each alert of these names, of any name where none is given."""

    @classmethod
    def answers_with_stacks(cls, occasion: str) -> bool:
        """See Watch."""
        return occasion.partition(" ")[0] == STALL_ALERT

    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """See Watch."""
        for alert in moment.alerts:
            if not self.details.names or alert.name in self.details.names:
                cause = f"the alert {alert.name} fires" + (f": {alert.summary}" if alert.summary else "")
                yield Detection(self.name, f"{alert.name} {alert.started}", cause)
