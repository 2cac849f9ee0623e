"""The alerts that Alertmanager sends (webhook, version 4), read within limits: which alert fires about which job.

Guarantees: pure; a body that is no such message is an `InvalidMessage`; no series of one namespace speaks of another,
but those of our own operator; left out are alerts that say neither a job nor
a pod, those that are resolved, and our own about reports, each of which would bring about the next one; of alike alerts
about one job the first counts. Source: Alertmanager, configuration of `webhook_config`.
"""

from dataclasses import dataclass
from typing import Final

import msgspec
from fleetprof_api.errors import FleetprofError

MOST_ALERTS: Final = 10_000
"""Of one message; Alertmanager's own `max_alerts` can be set lower."""
REPORT_ALERT: Final = "FleetprofReport"
"""Our own alert (`report_alert`)."""
_MOST_TEXT: Final = 253


class InvalidMessage(FleetprofError, ValueError):
    """The body is not what Alertmanager sends; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringAlert:
    """One alert about one job: by `kind` and `workload`, by `pod`, or by both. `started`: since when, as said."""

    name: str
    namespace: str
    kind: str
    workload: str
    pod: str
    started: str
    summary: str


class _Alert(msgspec.Struct):
    status: str = "firing"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    startsAt: str = ""  # noqa: N815 Alertmanager's name


class _Message(msgspec.Struct):
    alerts: list[_Alert]
    version: str = "4"


def read_alerts(body: bytes, own_namespace: str = "") -> list[FiringAlert]:
    """The alerts that fire, each about another job or by another name. Raises InvalidMessage.

    `own_namespace`: the operator's. What was scraped there alone may speak of another namespace.
    """
    try:
        message = msgspec.json.decode(body, type=_Message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessage(f"the body must be a message of Alertmanager's webhook: {error}") from None
    if message.version != "4":
        raise InvalidMessage(f"the message has version {message.version[:20]!r}; this receiver reads version 4")
    if len(message.alerts) > MOST_ALERTS:
        raise InvalidMessage(f"the message has {len(message.alerts)} alerts; at most {MOST_ALERTS} are read")
    found: dict[tuple[str, ...], FiringAlert] = {}
    for alert in message.alerts:
        if alert.status == "firing" and (read := _read(alert, own_namespace)) is not None:
            found.setdefault((read.name, read.namespace, read.kind, read.workload, read.pod), read)
    return list(found.values())


def _read(alert: _Alert, own_namespace: str) -> FiringAlert | None:
    labels = {name: value[:_MOST_TEXT] for name, value in alert.labels.items()}
    namespace, pod = labels.get("namespace", ""), labels.get("pod", "")
    # A scrape that does not honour the labels of what it scrapes renames them. Anybody's pod can have such labels: its
    # `namespace` says whose it is, and it speaks of its own alone.
    if exported := labels.get("exported_namespace"):
        if namespace == own_namespace:
            namespace, pod = exported, labels.get("exported_pod", "")
        elif exported != namespace:
            return None
    kind, workload = labels.get("kind", ""), labels.get("workload", "")
    name = labels.get("alertname", "")
    if not name or name == REPORT_ALERT or not namespace or not (pod or (kind and workload)):
        return None
    return FiringAlert(
        name=name,
        namespace=namespace,
        kind=kind,
        workload=workload,
        pod=pod,
        started=alert.startsAt[:40],
        summary=" ".join((alert.annotations.get("summary") or "").split())[:200],
    )
