"""Alertmanager has sent an alert about the job."""

from collections.abc import Iterator

from fleetprof_api.policy import AlertTrigger

from fleetprof_operator.policies.triggers.watch import Detection, JobMoment, Watch


class AlertWatch(Watch[AlertTrigger]):
    """Fires for each alert of these names, of any name where none is given."""

    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """See Watch."""
        for alert in moment.alerts:
            if not self.details.names or alert.name in self.details.names:
                cause = f"the alert {alert.name} fires" + (f": {alert.summary}" if alert.summary else "")
                yield Detection(self.name, f"{alert.name} {alert.started}", cause)
