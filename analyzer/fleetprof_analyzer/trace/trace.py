"""One rank's trace in memory: the rows that measures need, as integer-nanosecond columns.

Guarantees: times are exact integers on the rank's own clock, Unix ns where `time_origin` is "unix"; rows are in file
order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from fleetprof_api.kernel_class import KernelClass

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


class Category(IntEnum):
    """The category of a row. Old traces (before Kineto 0.4) name the same things with capitals."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    OPERATOR = 3
    ANNOTATION = 4
    RUNTIME = 5  # a call of the host into CUDA or HIP; not work
    COLLECTION = 6  # a Python frame of the garbage collector
    FOREIGN = 7  # work of a device that is not known here: counted while a trace is read, and left out
    FRAME = 8  # a long Python frame of a module or the user's code, in Trace.frames alone; others are not kept


ROUNDED_NS: Final = 1_000
"""Times of a trace may be off by as much: some recorders write whole µs."""

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
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "xpu_driver": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,  # devices of other vendors, such as NPUs
    "privateuse1_driver": Category.RUNTIME,
    "Runtime": Category.RUNTIME,
    "mtia_ccp_events": Category.FOREIGN,
    "mtia_insight": Category.FOREIGN,
    "hpu_op": Category.FOREIGN,
    "glow_runtime": Category.FOREIGN,
}
PYTHON_FUNCTION: Final = "python_function"

VALUED: Final = "aten::convolution"
"""The beginnings of names of operators whose values are kept: what a convolution computes depends on its stride."""

Place = tuple[str, str]
Shape = tuple[bytes, bytes]
"""(grid, block) of a kernel as the trace writes them, such as (b"[8, 1, 1]", b"[640, 1, 1]")."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of an operator: the elements of each of its first ones, 0 for what is no tensor.

    The texts of JSON are those of the trace: b"" where it says none, and of values for all but `VALUED` operators.
    """

    elements: tuple[int, ...]
    text: str  # the dimensions of all inputs, cut
    dimensions: bytes = b""
    types: bytes = b""
    values: bytes = b""


@dataclass(frozen=True, slots=True)
class Collective:
    """A row's words about its collective; "" and None where it does not. Texts are those of the trace."""

    name: str = ""
    group_name: str = ""
    group_ranks: str = ""  # "[0, 1]", cut by the recorder for large groups
    group_size: int | None = None
    group_start: int | None = None  # members are start, start + stride, ...
    group_stride: int | None = None
    elements_in: int | None = None
    elements_out: int | None = None
    data_type: str = ""
    source: int | None = None  # ranks of a send or receive
    target: int | None = None
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length n. `name`, `place`, `shape`, `collective` index the lists of `Trace`.

    `shape` is that of a kernel's launch, in `Trace.shapes`, or what an operator was given, in `Trace.inputs`.
    `correlation` joins device work with the RUNTIME row that launched it; `detail` is the size in bytes of a copy or
    set, and autograd's sequence number of an operator. `shape`, `collective`, `correlation` and `detail` are -1 where
    the row does not say them.

    A selection of rows gathers a column when it is first asked for: most measures look at two or three of them.
    """

    category: npt.NDArray[np.int8]
    name: Int32s
    place: Int32s
    start_ns: Int64s
    duration_ns: Int64s
    correlation: Int64s
    shape: Int32s
    collective: Int32s
    detail: Int64s
    _of: "Rows | None" = field(default=None, init=False, repr=False, compare=False)
    _at: "npt.NDArray[np.intp] | slice | None" = field(default=None, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self._at) if isinstance(self._at, np.ndarray) else len(self.start_ns)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Called where a column is not set: those of a selection, until they are gathered.
            if name not in COLUMNS:
                raise AttributeError(name)
            whole = getattr(self._of, name)
            column = whole[self._at] if isinstance(self._at, slice) else whole.take(self._at)
            object.__setattr__(self, name, column)
            return column

    @property
    def end_ns(self) -> Int64s:
        """Ends, shape (n,)."""
        return self.start_ns + self.duration_ns

    @property
    def launch_shape(self) -> Int32s:
        """The launch shapes of kernels, -1 for all other rows, shape (n,)."""
        return np.where(self.on_device, self.shape, np.int32(-1))

    @property
    def on_device(self) -> Bools:
        """A mask of the rows that are work of the device, shape (n,)."""
        return self.category <= Category.MEMSET

    def select(self, mask: Bools) -> "Rows":
        """The rows where `mask`, shape (n,), is true."""
        return self.take(np.flatnonzero(mask))

    def part(self, first: int, last: int) -> "Rows":
        """The rows from `first` up to `last`, as views."""
        return _selection(self, slice(first, last))

    def take(self, positions: npt.NDArray[np.intp]) -> "Rows":
        """The rows at `positions`, in that order."""
        if self._of is None or not isinstance(self._at, np.ndarray):
            return _selection(self, positions)
        return _selection(self._of, self._at[positions])


def _selection(rows: Rows, at: "npt.NDArray[np.intp] | slice") -> Rows:
    selection = object.__new__(Rows)
    object.__setattr__(selection, "_of", rows)
    object.__setattr__(selection, "_at", at)
    return selection


COLUMNS: Final = tuple(column.name for column in fields(Rows) if column.init)
_NO_INT32S: Final = np.zeros(0, np.int32)
_NO_INT64S: Final = np.zeros(0, np.int64)
NO_ROWS: Final = Rows(
    category=np.zeros(0, np.int8),
    name=_NO_INT32S,
    place=_NO_INT32S,
    start_ns=_NO_INT64S,
    duration_ns=_NO_INT64S,
    correlation=_NO_INT64S,
    shape=_NO_INT32S,
    collective=_NO_INT32S,
    detail=_NO_INT64S,
)


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Rows of allocators about themselves, columns of equal length. `device` indexes `devices`; -1 bytes: not said."""

    devices: list[str]  # "cuda:0", "cpu"
    device: Int64s
    at_ns: Int64s
    allocated_bytes: Int64s
    reserved_bytes: Int64s


NO_MEMORY: Final = MemoryRows([], _NO_INT64S, _NO_INT64S, _NO_INT64S, _NO_INT64S)


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """A trace's words about itself; None or "" where it does not."""

    rank: int | None = None
    world_size: int | None = None
    trace_id: str = ""
    host_name: str = ""
    device_name: str = ""
    base_ns: int | None = None
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # process groups: name -> global ranks


@dataclass(frozen=True, slots=True)
class Trace:
    """One file as read. `places` are (device, stream) for device rows and (process, thread) for host rows."""

    source: str
    metadata: TraceMetadata
    rows: Rows
    names: list[str]
    places: list[Place]
    shapes: list[Shape] = field(default_factory=list)
    inputs: list[Inputs] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    time_origin: Literal["unix", "trace"] = "unix"
    window_start_ns: int | None = None  # "Iteration Start" of Kineto: when it began to record
    window_end_ns: int | None = None  # "Record Window End"
    memory: MemoryRows = NO_MEMORY
    frames: Rows = NO_ROWS
    truncated: bool = False
    kernel_classes: Sequence[KernelClass] = ()  # as asked, before the table of `classes`
    recorded_permille: int | None = None  # operators in the trace of those that ran; None: too few to tell
    event_count: int = 0
    decoded_bytes: int = 0
    base_ns: int = 0  # what was added to the file's own times

    def owners(self, rows: Rows) -> tuple[list[str], Int32s]:
        """The devices and processes of all places in order (2 before 10), and whose each row is, shape (n,)."""
        names = sorted({place[0] for place in self.places}, key=lambda name: (len(name), name))
        number = {name: at for at, name in enumerate(names)}
        return names, np.array([number[place[0]] for place in self.places], np.int32)[rows.place]
