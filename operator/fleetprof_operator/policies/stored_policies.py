"""Writes how policies stand to the object store, where the web UI reads it (`fleetprof_api.policy.stored`).

Guarantees: a namespace is written when something in it changed, and at most every WRITE_NS; a store that is away leaves
it to a later turn and holds no turn up; what is written says nothing that the policies'
objects do not say.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.policy.stored import NamespacePolicies, StoredPolicy, write_policies
from fleetprof_api.policy.stored_status import PolicyStatus
from fleetprof_store.base import StoreError

from fleetprof_operator.policies.policy_state import PolicyState

log = logging.getLogger(__name__)

WRITE_NS: Final = 10 * 10**9


class PolicyWriter:
    """Stores the policies of each namespace that changed. `put(key, data)` blocks, and raises StoreError."""

    def __init__(self, put: Callable[[str, bytes], None], clock: Callable[[], int] = time.time_ns) -> None:
        self._put = put
        self._clock = clock
        self._written: dict[str, tuple[bytes, int]] = {}  # namespace → its document, and when that was tried last
        self._writing: asyncio.Task[None] | None = None

    def begin_write(self, policies: Sequence[PolicyState]) -> None:
        """Stores what is new beside the turns; nothing while an earlier write still runs."""
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(policies))
            self._writing.add_done_callback(self._end_write)

    async def close(self) -> None:
        """Waits for no call that is under way."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    def _end_write(self, task: asyncio.Task[None]) -> None:
        self._writing = None
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("policies are not stored, by a fault of ours; the next turn tries again", exc_info=fault)

    async def _write(self, policies: Sequence[PolicyState]) -> None:
        now = self._clock()
        by_namespace: dict[str, list[StoredPolicy]] = {namespace: [] for namespace in self._written}
        for policy in sorted(policies, key=lambda policy: policy.name):
            by_namespace.setdefault(policy.namespace, []).append(_describe(policy, now))
            await asyncio.sleep(0)
        for namespace, found in by_namespace.items():
            data = write_policies(NamespacePolicies(found))
            written, tried_unix_ns = self._written.get(namespace, (b"", 0))
            if data == written or now - tried_unix_ns < WRITE_NS:
                continue
            try:
                await asyncio.to_thread(self._put, keys.policies_key(namespace), data)
            except StoreError as error:
                log.warning("the policies of %s are not stored yet: %s", namespace, error)
                self._written[namespace] = written, now
                break  # the others' calls would wait as long for the same answer
            self._written[namespace] = data, now


def _describe(policy: PolicyState, now_unix_ns: int) -> StoredPolicy:
    status = policy.build_status(now_unix_ns)
    for condition in status["conditions"]:
        del condition["lastTransitionTime"]
    captures = [{**c, "uid": policy.uids.get(c["request"], "")} for c in status["captures"]]
    stored = msgspec.convert({**status, "captures": captures}, PolicyStatus)
    return StoredPolicy(name=policy.name, spec=policy.document_spec, status=stored)
