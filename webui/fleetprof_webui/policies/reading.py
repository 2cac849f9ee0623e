"""The policies of namespaces, as the operator stores them (`fleetprof_api.policy.stored`).

Guarantees: read within limits, and lists not again while the store has the same; what is not there, or cannot be read,
is none; texts are sent as they are, and are the pages' to show as text.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.policy.stored import (
    MOST_BYTES,
    InvalidPolicies,
    StoredPolicy,
    read_policies,
)
from fleetprof_store.base import NotFound, Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.policies import Policy, PolicyAction, PolicyDetail, PolicyPage

log = logging.getLogger(__name__)

MOST_SHOWN: Final = 1000
MOST_OF_JOB: Final = 64
_MOST_NAMESPACES: Final = 200


class StoredPolicies:
    """The lists of namespaces, each read again when its version in the store changes. For several threads at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, tuple[str, Sequence[Policy]]] = {}
        self._turn = threading.Lock()

    def find(self, versions: Mapping[str, str]) -> PolicyPage:
        """Policies of the first _MOST_NAMESPACES, by namespace and name, at most MOST_SHOWN. Raises StoreError.

        `versions`: by namespace that of its document; "" is not known, and the document is read.
        """
        shown = sorted(versions)[:_MOST_NAMESPACES]
        found = [one for namespace in shown for one in self._read(namespace, versions[namespace])]
        return PolicyPage(items=found[:MOST_SHOWN], total=len(found))

    def _read(self, namespace: str, version: str) -> Sequence[Policy]:
        kept_version, policies = self._kept.get(namespace, ("", ()))
        if version and version == kept_version:
            return policies
        policies = [_describe(namespace, one) for one in _read(self._store, namespace)]
        with self._turn:
            self._kept[namespace] = (version, policies)
            while len(self._kept) > _MOST_NAMESPACES:
                del self._kept[next(iter(self._kept))]
        return policies


def find_policy(store: Store, namespace: str, name: str) -> PolicyDetail | None:
    """One policy; None where there is none of this name. Raises StoreError."""
    one = next((policy for policy in _read(store, namespace) if policy.name == name), None)
    if one is None:
        return None
    return PolicyDetail(
        policy=_describe(namespace, one),
        spec_yaml=msgspec.yaml.encode(one.spec).decode(),
        actions=_list_actions(namespace, one),
    )


def find_actions(store: Store, namespace: str) -> dict[tuple[str, str], list[PolicyAction]]:
    """The actions of all policies of a namespace by the job's (kind, name), the latest first. Raises StoreError."""
    found: dict[tuple[str, str], list[PolicyAction]] = {}
    for policy in _read(store, namespace):
        for action in _list_actions(namespace, policy):
            found.setdefault((action.workload_kind, action.workload_name), []).append(action)
    for actions in found.values():
        actions.sort(key=_time_of, reverse=True)
    return found


def find_job_actions(store: Store, namespace: str, kind: str, name: str, since_unix_ns: int) -> list[PolicyAction]:
    """Policies' actions about one job, the latest first, at most MOST_OF_JOB; `kind` "" is any. Raises StoreError."""
    found = [
        action
        for (of_kind, of_name), actions in find_actions(store, namespace).items()
        if of_name == name and kind in ("", of_kind)
        for action in actions
        if _time_of(action) >= since_unix_ns
    ]
    return sorted(found, key=_time_of, reverse=True)[:MOST_OF_JOB]


def _read(store: Store, namespace: str) -> list[StoredPolicy]:
    try:
        with store.open(keys.policies_key(namespace)) as stream:
            return read_policies(stream.read(MOST_BYTES + 1)).policies
    except NotFound:
        return []
    except InvalidPolicies as error:
        log.warning("the policies of %s: %s", namespace, error)
        return []


def _describe(namespace: str, policy: StoredPolicy) -> Policy:
    status = policy.status
    ready = next((one for one in status.conditions if one.type == "Ready"), None)
    triggers: Any = policy.spec.get("triggers")
    return Policy(
        namespace=namespace,
        name=policy.name,
        mode=str(policy.spec.get("mode", "Capture")),
        ready=ready is not None and ready.status == "True",
        message=ready.message if ready else "",
        triggers=[_say_trigger(one) for one in triggers] if isinstance(triggers, list) else [],
        fired=status.fired,
        captured=status.captured,
        suppressed=status.suppressed,
        last_fired_unix_ns=_read_time(status.last_fired_time),
    )


def _say_trigger(trigger: object) -> str:
    if not isinstance(trigger, Mapping):
        return ""
    return f"{trigger.get('name', '')}: {trigger.get('type', '')}"


def _list_actions(namespace: str, policy: StoredPolicy) -> list[PolicyAction]:
    actions = []
    for capture in policy.status.captures:
        kind, _, name = capture.workload.partition("/")
        actions.append(
            PolicyAction(
                namespace=namespace,
                policy=policy.name,
                trigger=capture.trigger,
                workload_kind=kind,
                workload_name=name,
                action="captured" if capture.mode == "Capture" else "would capture",
                reason=capture.result,
                message=capture.cause,
                headline=capture.headline,
                request=capture.request if capture.mode == "Capture" else "",
                uid=capture.uid,
                count=1,
                first_unix_ns=_read_time(capture.fired_time),
                at_unix_ns=_read_time(capture.fired_time),
            )
        )
    for left in policy.status.suppressions:
        kind, _, name = left.workload.partition("/")
        actions.append(
            PolicyAction(
                namespace=namespace,
                policy=policy.name,
                trigger=left.trigger,
                workload_kind=kind,
                workload_name=name,
                action="suppressed",
                reason=left.reason,
                message=left.message,
                headline="",
                request="",
                uid="",
                count=left.count,
                first_unix_ns=_read_time(left.first_time),
                at_unix_ns=_read_time(left.last_time),
            )
        )
    return sorted(actions, key=_time_of, reverse=True)


def _time_of(action: PolicyAction) -> int:
    return int(action.at_unix_ns or 0)


def _read_time(text: str) -> str | None:
    try:
        return unix_ns(int(datetime.fromisoformat(text).timestamp()) * 10**9)
    except ValueError:
        return None
