"""One rank's communication as a chain: what it waited for, and what it did itself in between.

This is the side file of a rank's summary: all that the straggler analysis needs of a trace. Guarantees: integer
nanoseconds of the rank's own clock; `encode` and `decode` are inverse; at most `MOST_OPERATIONS` operations, the
window's earlier ones, and `cut` says when there were more.
"""

import zlib
from dataclasses import dataclass, field, fields
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from fleetprof_api.errors import FleetprofError

from fleetprof_analyzer.rank.communication.core_waits import CoreWaits
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse
from fleetprof_analyzer.rank.host.by_iteration import ThreadTimes
from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s

MOST_OPERATIONS: Final = 250_000
MOST_OPERATIONS_BYTES: Final = 32_000
"""Longer ones lie beside a rank's summary, or, where that is made beside the trainer, nowhere."""
_MOST_DECODED: Final = 1 << 30

KINDS: Final = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier",
    "broadcast", "reduce", "gather", "scatter", "send", "receive", "send_receive", "other",
)  # fmt: skip
SYNCHRONISING: Final = frozenset(("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"))
"""All members end together: none can leave before the last has come."""


class Group(msgspec.Struct, frozen=True):
    """A process group as a trace names it; `members` is empty where the trace does not say them."""

    name: str = ""
    members: tuple[int, ...] = ()
    size: int | None = None


class Signature(msgspec.Struct, frozen=True):
    """A kernel (its name, as a hash) on one rank: how often, and how long beside the threads that it launched.

    The sums are over the calls that ran without communication beside them, over all calls where none did.
    """

    kernel: int
    count: int
    timed: float  # calls
    timed_threads: float  # 0 where unsaid
    squared_threads: float
    threads_by_ns: float
    timed_ns: float


@dataclass(frozen=True, slots=True)
class OperationColumns:
    """n operations in the order of their launch, and m marks on the rank's chain of own work.

    The chain is the rank's local work in launch order. At an operation's mark the operation may begin; at its join
    mark the chain waits for its end; at a mark that waits the host waits for the chain, or on a join for its operation.
    Times of a mark are since the mark before it: `own_ns` is the chain's time, gaps included, the others take the host
    apart from it (host_chain.py) and say nothing where its launches were not recorded.
    """

    iteration: Int32s  # position in RankOperations.iterations, -1 outside
    kind: npt.NDArray[np.int8]  # index into KINDS
    group: Int32s  # index into RankOperations.groups
    sequence: Int64s  # -1 where unsaid
    elements: Int64s  # -1 where unsaid
    peer: Int32s  # the other rank of a send or receive, -1 otherwise
    place: Int32s  # stream or thread: operations of one place run one after the other
    behind: Int64s  # the operation of another place that it begins behind, -1: none
    after_local: Bools  # begins only when the chain has come to its mark
    launch_ns: Int64s
    start_ns: Int64s
    duration_ns: Int64s
    late_ns: Int64s  # from the moment it could begin until it began
    lag_ns: Int64s  # the part of it after its launch
    segment_ns: Int64s  # the chain's own time since the operation before, gaps included, also one before it is launched
    busy_ns: Int64s  # of the segment: the device worked
    data_ns: Int64s  # of the segment's rest, or of the host's own time: a data loader ran
    collection_ns: Int64s  # of the rest: the garbage collector ran
    pause_ns: Int64s  # the longest gap of the segment outside data loading
    quiet_ns: Int64s  # the part of that gap in which no thread of the host did anything that was recorded
    mark_operation: Int32s
    mark_joins: Bools
    mark_waits: Bools
    mark_awaits: Int32s  # at a mark that waits for a part of the chain: how many marks back it ends; -1: such an end
    own_ns: Int64s
    work_ns: Int64s
    host_ns: Int64s
    lead_ns: Int64s
    tail_host_ns: Int64s
    tail_work_ns: Int64s


@dataclass(frozen=True, slots=True)
class RankOperations:
    """One rank's operations; the window's edge hides the segment of the first."""

    source: str
    rank: int | None
    world_size: int | None
    kind: str  # "gpu" or "cpu"
    iterations: list[int]  # their indices
    indices_proven: bool  # the same index is the same iteration on every rank
    groups: list[Group]
    columns: OperationColumns
    work: list[float] = field(default_factory=list)  # ns per iteration at its own usual pace, empty where unsaid
    clock_megahertz: list[float | None] = field(default_factory=list)  # median of the device's samples per iteration
    signatures: list[Signature] = field(default_factory=list)
    operators: list[OperatorUse] = field(default_factory=list)  # of the training thread
    cores: CoreWaits = field(default_factory=CoreWaits)
    sampled: bool = False
    cut: bool = False
    # The host launches further work while collectives run, so it does not wait for them and is always followed: then
    # own_ns, late_ns and busy_ns are left out, which only its chain alone would need.
    leads: bool = False
    unsure_ns: int = 0  # of the host's own time: it may have waited for its device instead
    thread: ThreadTimes = field(default_factory=ThreadTimes)  # where the training thread was, by iteration

    def __len__(self) -> int:
        return len(self.columns.start_ns)


class _Head(msgspec.Struct):
    """Everything but the columns; `columns` holds (name, type, length)."""

    source: str
    rank: int | None
    world_size: int | None
    kind: str
    iterations: list[int]
    indices_proven: bool
    groups: list[Group]
    work: list[float]
    clock_megahertz: list[float | None]
    signatures: list[Signature]
    sampled: bool
    cut: bool
    leads: bool
    unsure_ns: int = 0
    thread: ThreadTimes = ThreadTimes()
    operators: list[OperatorUse] = []
    cores: CoreWaits = msgspec.field(default_factory=CoreWaits)
    columns: list[tuple[str, str, int]] = []


_HEAD_FIELDS: Final = tuple(name for name in _Head.__struct_fields__ if name != "columns")


class UnreadableOperations(FleetprofError, ValueError):
    """The bytes are no encoded operations."""


def encode(operations: RankOperations) -> bytes:
    """Bytes for the store: a head, then delta-coded columns, compressed together."""
    head = _Head(**{name: getattr(operations, name) for name in _HEAD_FIELDS})
    body = []
    for column in fields(OperationColumns):
        values = getattr(operations.columns, column.name)
        head.columns.append((column.name, values.dtype.str, len(values)))
        body.append(np.diff(values.astype(np.int64), prepend=np.int64(0)).tobytes())
    packed = msgspec.msgpack.encode(head)
    return zlib.compress(len(packed).to_bytes(8, "little") + packed + b"".join(body), 6)


def decode(data: bytes) -> RankOperations:
    """Raises UnreadableOperations."""
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(data, _MOST_DECODED)
        if inflater.unconsumed_tail:
            raise UnreadableOperations(f"operations decode to more than {_MOST_DECODED:,} bytes")
        length = int.from_bytes(text[:8], "little")
        head = msgspec.msgpack.decode(text[8 : 8 + length], type=_Head)
        columns, at = {}, 8 + length
        for name, kind, count in head.columns:
            columns[name] = np.cumsum(np.frombuffer(text, np.int64, count, at)).astype(kind)
            at += 8 * count
        rest = {name: getattr(head, name) for name in _HEAD_FIELDS}
        return RankOperations(columns=OperationColumns(**columns), **rest)
    except (zlib.error, msgspec.MsgspecError, ValueError, TypeError) as error:
        raise UnreadableOperations(f"not a rank's operations: {error}") from None
