"""What PyTorch's allocators say of themselves where memory was recorded: `[memory]` instants as columns.

Guarantees: four numbers per instant are kept, nothing else; instants without a readable time are left out; untrusted
devices are counted within a limit.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.reading.events import Event, EventArgs, Scalar
from fleetprof_analyzer.reading.nanoseconds import MISSING, parse_microseconds
from fleetprof_analyzer.trace import NO_MEMORY, Int64s, MemoryRows

NAME: Final = "[memory]"
# c10::DeviceType, as far as an allocator of it reports.
_DEVICE_TYPES: Final = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia"}
_MOST_DEVICES: Final = 1024
_LARGEST: Final = 1 << 62
_NOTHING_SAID: Final = EventArgs()


class MemoryColumns:
    """Collects the instants of a trace, one array per batch."""

    def __init__(self) -> None:
        self._batches: list[tuple[Int64s, Int64s]] = []
        self._devices: dict[tuple[Scalar, Scalar], int] = {}

    def add(self, events: list[Event]) -> None:
        """Adds instants named `NAME`."""
        at_ns = parse_microseconds([event.ts for event in events])
        said = [event.args or _NOTHING_SAID for event in events]
        numbers = np.array(
            [(self._device(args), _amount(args.total_allocated), _amount(args.total_reserved)) for args in said],
            np.int64,
        )
        self._batches.append((at_ns, numbers))

    def rows(self, base_ns: int) -> MemoryRows:
        """All of them in file order; `base_ns` is added to their times."""
        if not self._batches:
            return NO_MEMORY
        at_ns = np.concatenate([at for at, _ in self._batches])
        numbers = np.concatenate([numbers for _, numbers in self._batches])
        kept = (at_ns != MISSING) & (numbers[:, 0] >= 0)
        device, allocated, reserved = numbers[kept].T
        return MemoryRows(
            devices=[_name(*key) for key in self._devices],
            device=device,
            at_ns=at_ns[kept] + base_ns,
            allocated_bytes=allocated,
            reserved_bytes=reserved,
        )

    def _device(self, args: EventArgs) -> int:
        key = (args.device_type, args.device_id)
        number = self._devices.get(key)
        if number is None:
            if len(self._devices) == _MOST_DEVICES:
                return -1
            number = self._devices[key] = len(self._devices)
        return number


def _amount(value: Scalar) -> int:
    return value if type(value) is int and 0 <= value < _LARGEST else -1


def _name(kind: Scalar, number: Scalar) -> str:
    """`cuda:0`, as PyTorch writes it."""
    name = _DEVICE_TYPES.get(kind, f"device type {kind}") if type(kind) is int else "unknown"
    return f"{name}:{number}" if type(number) is int and number >= 0 else name
