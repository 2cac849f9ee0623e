"""Puts a report beside the alerts that it explains: an alert of severity `info` about the same job, in Alertmanager.

Alertmanager has no call that adds an annotation to an alert that somebody else sends: Prometheus sends each of its
alerts again every minute, and the newest set of annotations replaces the others. An alert of our own with the job's
labels stays: it is in the group of the job's other alerts wherever these are grouped by `workload`, and its annotations
hold headline and link. Source: Alertmanager, API v2, `POST /api/v2/alerts`; types.Alert.Merge.

The folder is the notifications' Secret: `alertmanager` is the base address; optionally `alertmanager-token`, a bearer
token, and `alertmanager-ca.crt`, the authority of its certificate.
Guarantees: users choose no address; the receiver of this operator never takes such an alert for a trigger.
"""

import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fleetprof_operator.policies.notifications.delivery import Delivery, is_address, read_key
from fleetprof_operator.policies.triggers.alerts import REPORT_ALERT

STAYS_S: Final = 4 * 3600
"""So long it is shown: about as long as Alertmanager waits until it repeats a notification."""
_MOST_TEXT: Final = 2000

log = logging.getLogger(__name__)


def build_alert(values: Mapping[str, str], now_s: float) -> bytes:
    """The body of the call; `values` are those of a notification."""
    kind, _, name = values["workload"].partition("/")
    alert = {
        "labels": {
            "alertname": REPORT_ALERT,
            "severity": "info",
            "namespace": values["namespace"],
            "kind": kind,
            "workload": name,
            "policy": values["policy"],
            "request": values["request"],
        },
        "annotations": {
            "summary": "A policy captured this job.",
            "description": f"{values['result']}. {values['headline']}".strip()[:_MOST_TEXT],
            "cause": values["cause"][:_MOST_TEXT],
            "report": values["link"],
        },
        "startsAt": _format(now_s),
        "endsAt": _format(now_s + STAYS_S),
    }
    if is_address(values["link"]):
        alert["generatorURL"] = values["link"]
    return json.dumps([alert]).encode()


class ReportAlerts:
    """Sends them to the Alertmanager that `folder` names; None: to nobody."""

    def __init__(
        self, folder: Path | None, delivery: Delivery | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._delivery = delivery or Delivery()
        self._clock = clock

    async def send(self, values: Mapping[str, str]) -> bool:
        """Tells whether it was taken. False, after some tries, when it is given up, or no Alertmanager is named."""
        if self._folder is None:
            return False
        try:
            base, token, authority = (
                read_key(self._folder, name) for name in ("alertmanager", "alertmanager-token", "alertmanager-ca.crt")
            )
            context = ssl.create_default_context(cadata=authority) if authority else None
        except (OSError, ValueError, TypeError) as problem:  # TypeError: the authority holds more than ASCII
            log.warning("no report is told to Alertmanager, because the settings cannot be read: %s", problem)
            return False
        if not base:
            return False
        if not is_address(base):
            log.warning("`alertmanager` in %s is no address of http or https", self._folder)
            return False
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        what = f"the alert with the report of request {values['request']}"
        url = f"{base.rstrip('/')}/api/v2/alerts"
        return await self._delivery.post(url, build_alert(values, self._clock()), lambda: headers, what, context)


def _format(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
