"""Tables of one rank, and of the host's part in device work: memory, operators that launch. Formulas: docs/measures.md.

Guarantees: durations are integer nanoseconds, sizes integer bytes; what a trace does not say is null, never 0.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

Bytes = Annotated[int, Meta(description="bytes", ge=0)]


class MemoryPeak(msgspec.Struct, kw_only=True, frozen=True):
    """The most memory that PyTorch's allocator of one device had given out, and had taken, while it was recorded."""

    device: Annotated[str, Meta(description="cuda:0, hip:0, cpu, …")]
    allocated_bytes: Annotated[int | None, Meta(description="largest Total Allocated; null where rows lack it")] = None
    allocated_at_ns: Annotated[int | None, Meta(description="when first so much, on the clock of start_ns")] = None
    reserved_bytes: Annotated[
        int | None, Meta(description="largest Total Reserved, free blocks included; null on the CPU, which keeps none")
    ] = None
    reserved_at_ns: int | None = None
    first_allocated_bytes: Annotated[int | None, Meta(description="Total Allocated of the first row")] = None
    events: Annotated[int, Meta(description="allocations and releases recorded", ge=0)] = 0
