"""The cost of a workload's earlier captures, and when they were begun: one small document per workload in the store.

Kept there, so that a hub that was restarted knows it, and a request that was deleted still counts. What is known of a
workload's costs is told apart by the options of `collect`. A namespace has a document too, for its count.

Guarantees: bounded, whatever is captured how often; changes of one document follow each other; a document that cannot
be read counts as none.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry, RecordingEstimate
from fleetprof_api.report.recording import learn

from fleetprof_operator.hub.storage.store_calls import StoreCalls

log = logging.getLogger(__name__)

FRESH_NS: Final = 7 * 86_400 * 10**9
"""A cost that is older tells nothing any more."""
_MOST_COSTS: Final = 16
_MOST_BEGUN: Final = 2000
_KEPT_NS: Final = 8 * 86_400 * 10**9
_ALIKE: Final = 2  # so much longer or shorter may an iteration be by now


class RememberedCost(msgspec.Struct, kw_only=True, frozen=True):
    """The cost of the latest capture with these options: the most of any rank."""

    at_unix_ns: int
    uid: str
    collect: list[str]
    torch_version: str = ""
    device_kind: str = ""
    iteration_before_ns: int = 0
    slowdown_percent: int = 0
    stall_ns: int = 0
    estimate: RecordingEstimate | None = None


class Begun(msgspec.Struct, kw_only=True, frozen=True):
    """A capture for which ranks, or a canary, were asked."""

    uid: str
    at_unix_ns: int


class WorkloadRecord(msgspec.Struct, kw_only=True, frozen=True):
    """The store's record of one workload: what recording cost it, and which captures were begun."""

    schema_version: int = 1
    workload: str = ""
    costs: list[RememberedCost] = []
    begun: list[Begun] = []


class WorkloadRecords:
    """Reads and changes the records; changes of one workload come one after the other."""

    def __init__(self, calls: StoreCalls) -> None:
        self._calls = calls
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def read(self, namespace: str, workload: str) -> WorkloadRecord:
        """The record of a workload ("": of the namespace); an empty document where nothing is. Raises StoreError."""
        key = workload_key(namespace, workload)
        data = await self._calls.get_if_there(key)
        if data is None:
            return WorkloadRecord(workload=workload)
        try:
            return msgspec.json.decode(data, type=WorkloadRecord)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("%s cannot be read and is begun anew: %s", key, error)
            return WorkloadRecord(workload=workload)

    def hold(self, namespace: str) -> asyncio.Lock:
        """Held by who reads several documents of a namespace before changing one."""
        return self._locks.setdefault(namespace, asyncio.Lock())

    async def change(self, namespace: str, workload: str, change: Callable[[WorkloadRecord], WorkloadRecord]) -> None:
        """Writes what `change` makes of the document. Raises StoreError, and what `change` raises."""
        key = workload_key(namespace, workload)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            known = await self.read(namespace, workload)
            changed = change(known)
            if changed != known:
                data = msgspec.json.encode(changed)
                await self._calls.run(lambda: self._calls.store.put(key, data))


def name_workload(api_version: str, kind: str, name: str) -> str:
    """`API_VERSION/KIND/NAME`, as records name a workload."""
    return f"{api_version}/{kind}/{name}"


def workload_key(namespace: str, workload: str) -> str:
    """The key of a workload's document."""
    return keys.workload_key(namespace, hashlib.sha256(workload.encode()).hexdigest()[:40])


def note_begun(record: WorkloadRecord, uid: str, now_unix_ns: int) -> WorkloadRecord:
    """With one more capture that was begun; one that is known stays as it is."""
    if any(begun.uid == uid for begun in record.begun):
        return record
    kept = [begun for begun in record.begun if now_unix_ns - begun.at_unix_ns < _KEPT_NS]
    return msgspec.structs.replace(record, begun=[*kept, Begun(uid=uid, at_unix_ns=now_unix_ns)][-_MOST_BEGUN:])


def note_cost(record: WorkloadRecord, cost: RememberedCost) -> WorkloadRecord:
    """With the cost in place of the earlier one with the same options."""
    others = [known for known in record.costs if known.collect != cost.collect]
    return msgspec.structs.replace(record, costs=[*others, cost][-_MOST_COSTS:])


def find_cost(
    record: WorkloadRecord, collect: Sequence[str], process: pb.Process, now_unix_ns: int
) -> RememberedCost | None:
    """The cost of a recent capture of a job like this one with the same options; None when nobody knows."""
    for cost in record.costs:
        fresh = 0 <= now_unix_ns - cost.at_unix_ns < FRESH_NS
        same = (cost.torch_version, cost.device_kind) == (process.torch_version, process.device_kind)
        if cost.collect == sorted(collect) and fresh and same:
            now_ns, then_ns = process.step.iteration_ns, cost.iteration_before_ns
            if now_ns <= _ALIKE * then_ns and then_ns <= _ALIKE * now_ns:
                return cost
    return None


def sum_up(
    entries: Sequence[LedgerEntry], collect: Sequence[str], process: pb.Process, uid: str, now_unix_ns: int
) -> RememberedCost | None:
    """The cost of a capture from its lines; None when no rank was measured."""
    timed = [e.time_cost for e in entries if e.time_cost is not None and e.time_cost.iteration_ns]
    if not timed:
        return None
    return RememberedCost(
        at_unix_ns=now_unix_ns,
        uid=uid,
        collect=sorted(collect),
        torch_version=process.torch_version,
        device_kind=process.device_kind,
        iteration_before_ns=max(cost.iteration_before_ns for cost in timed),
        slowdown_percent=max(cost.slowdown_percent for cost in timed),
        stall_ns=max(cost.stall_ns for cost in timed),
        estimate=learn([e.recording_cost for e in entries if e.recording_cost is not None]),
    )
