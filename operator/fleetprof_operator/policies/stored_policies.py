"""Writes how policies stand to the object store, where the web UI reads it (`fleetprof_api.policy.stored`).

Guarantees: a namespace is written when something in it changed, and at most every WRITE_NS; a store that is away leaves
it to a later turn and holds no turn up for longer than one call; what is written says nothing that the policies'
objects do not say.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.policy.stored import NamespacePolicies, StoredPolicy, StoredStatus, write_policies
from fleetprof_store.base import StoreError

from fleetprof_operator.policies.policy_state import PolicyState

log = logging.getLogger(__name__)

WRITE_NS: Final = 10 * 10**9


class StoredPolicies:
    """`put(key, data)` blocks, and raises StoreError."""

    def __init__(self, put: Callable[[str, bytes], None], clock: Callable[[], int] = time.time_ns) -> None:
        self._put = put
        self._clock = clock
        self._written: dict[str, tuple[bytes, int]] = {}  # namespace → its document, and when that was tried last

    async def write(self, policies: Sequence[PolicyState]) -> None:
        """Stores what is new."""
        now = self._clock()
        by_namespace: dict[str, list[StoredPolicy]] = {namespace: [] for namespace in self._written}
        for policy in sorted(policies, key=lambda policy: policy.name):
            by_namespace.setdefault(policy.namespace, []).append(_describe(policy, now))
        for namespace, found in by_namespace.items():
            data = write_policies(NamespacePolicies(found))
            written, tried_unix_ns = self._written.get(namespace, (b"", 0))
            if data == written or now - tried_unix_ns < WRITE_NS:
                continue
            try:
                await asyncio.to_thread(self._put, keys.policies_key(namespace), data)
            except StoreError as error:
                log.warning("the policies of %s are not stored yet: %s", namespace, error)
                data = written
            self._written[namespace] = data, now


def _describe(policy: PolicyState, now_unix_ns: int) -> StoredPolicy:
    status = policy.build_status(now_unix_ns)
    for condition in status["conditions"]:
        del condition["lastTransitionTime"]
    captures = [{**c, "uid": policy.uids.get(c["request"], "")} for c in status["captures"]]
    stored = msgspec.convert({**status, "captures": captures}, StoredStatus)
    return StoredPolicy(name=policy.name, spec=policy.document_spec, status=stored)
