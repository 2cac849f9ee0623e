"""Words of PyTorch's allocators about themselves where memory was recorded: `[memory]` instants as columns.

Guarantees: four numbers per instant are kept, nothing else; instants without a readable time are left out; untrusted
devices are counted within a limit.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.reading.columns.growing import GrowingNumbers
from fleetprof_analyzer.reading.columns.nanoseconds import MISSING, parse_microseconds
from fleetprof_analyzer.reading.columns.packing import pack_counts, read_counts
from fleetprof_analyzer.reading.event import Instant, MemoryArgs, Scalar
from fleetprof_analyzer.trace.trace import NO_MEMORY, Int64s, MemoryRows

NAME: Final = "[memory]"
# c10::DeviceType, as far as an allocator of it reports.
_DEVICE_TYPES: Final = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia"}
_MOST_DEVICES: Final = 1024
_NOTHING_SAID: Final = MemoryArgs()


class MemoryColumns:
    """Collects the instants of a trace."""

    def __init__(self) -> None:
        self._columns = [GrowingNumbers() for _ in range(4)]
        self._devices: dict[tuple[Scalar, Scalar], int] = {}

    def add(self, events: list[Instant]) -> None:
        """Adds instants named `NAME`."""
        arguments = [event.args or _NOTHING_SAID for event in events]
        self.append(
            parse_microseconds([event.ts for event in events]),
            np.array([self.device_number(args.device_type, args.device_id) for args in arguments], np.int64),
            read_counts(pack_counts([args.total_allocated for args in arguments])),
            read_counts(pack_counts([args.total_reserved for args in arguments])),
        )

    def append(self, at_ns: Int64s, device: Int64s, allocated: Int64s, reserved: Int64s) -> None:
        """Adds instants as columns; devices are numbers of `device_number`."""
        for column, values in zip(self._columns, (at_ns, device, allocated, reserved), strict=True):
            column.append(values)

    def rows(self, base_ns: int) -> MemoryRows:
        """All of them in file order; `base_ns` is added to their times."""
        at_ns, device, allocated, reserved = (column.values() for column in self._columns)
        if len(at_ns) == 0:
            return NO_MEMORY
        kept = (at_ns != MISSING) & (device >= 0)
        return MemoryRows(
            devices=[_name(*key) for key in self._devices],
            device=device[kept],
            at_ns=at_ns[kept] + base_ns,
            allocated_bytes=allocated[kept],
            reserved_bytes=reserved[kept],
        )

    def device_number(self, kind: Scalar, number: Scalar) -> int:
        """The number of a device by its type and id, -1 where there are too many."""
        key = (kind, number)
        found = self._devices.get(key)
        if found is None:
            if len(self._devices) == _MOST_DEVICES:
                return -1
            found = self._devices[key] = len(self._devices)
        return found


def _name(kind: Scalar, number: Scalar) -> str:
    """`cuda:0`, as PyTorch writes it."""
    name = _DEVICE_TYPES.get(kind, f"device type {kind}") if type(kind) is int else "unknown"
    return f"{name}:{number}" if type(number) is int and number >= 0 else name
