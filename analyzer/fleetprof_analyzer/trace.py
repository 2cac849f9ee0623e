"""One rank's trace in memory: the rows that measures need, as integer-nanosecond columns.

Guarantees: times are exact integers on the rank's own clock, Unix ns where `time_origin` is "unix"; rows are in file
order.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


class Category(IntEnum):
    """What a row is. Old traces (before Kineto 0.4) name the same things with capitals."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    OPERATOR = 3
    ANNOTATION = 4


# cuda_sync, gpu_user_annotation and overhead rows are not here: they are no work.
CATEGORIES: Final = {
    "kernel": Category.KERNEL,
    "Kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "Memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "Memset": Category.MEMSET,
    "cpu_op": Category.OPERATOR,
    "Operator": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
}

Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length n. `name` and `place` index `Trace.names` and `Trace.places`."""

    category: npt.NDArray[np.int8]
    name: Int32s
    place: Int32s
    start_ns: Int64s
    duration_ns: Int64s

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Int64s:
        """Ends, shape (n,)."""
        return self.start_ns + self.duration_ns

    @property
    def on_device(self) -> Bools:
        """Which rows are work of the device, shape (n,)."""
        return self.category <= Category.MEMSET

    def select(self, mask: Bools) -> "Rows":
        """The rows where `mask`, shape (n,), is true."""
        return Rows(self.category[mask], self.name[mask], self.place[mask], self.start_ns[mask], self.duration_ns[mask])


NO_ROWS: Final = Rows(
    np.zeros(0, np.int8), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a trace says about itself; None or "" where it does not."""

    rank: int | None = None
    world_size: int | None = None
    trace_id: str = ""
    host_name: str = ""
    device_name: str = ""
    base_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """One file as read. `places` are (device, stream) for device rows and (process, thread) for host rows."""

    source: str
    metadata: Metadata
    rows: Rows
    names: list[str]
    places: list[Place]
    time_origin: Literal["unix", "trace"] = "unix"
    window_start_ns: int | None = None  # "Iteration Start" of Kineto: when it began to record
    window_end_ns: int | None = None  # "Record Window End"
    truncated: bool = False
    event_count: int = 0
    decoded_bytes: int = 0
