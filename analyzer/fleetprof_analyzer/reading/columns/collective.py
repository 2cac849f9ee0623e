"""Reads what an event says about its collective: name, process group, sizes, ranks of a send, sequence number.

PyTorch writes it into the kernel of NCCL and into `record_param_comms`; a `gloo:` range says its tensors' dimensions
only. Guarantees: any value that is not of the documented kind counts as unsaid; nothing is raised.
"""

from typing import Any, Final

import msgspec

from fleetprof_analyzer.reading.columns.dimensions import count_elements, read_dimensions
from fleetprof_analyzer.reading.event import EventArgs
from fleetprof_analyzer.trace.trace import Collective

_CHARACTERS: Final = 4096
_LARGEST: Final = 1 << 62


def read_collective(args: EventArgs) -> Collective:
    """The collective of an event's arguments."""
    inside = _number(args.elements_in)
    return Collective(
        name=_text(args.collective).lower(),
        group_name=_text(args.group_name),
        group_ranks=_text(args.group_ranks),
        group_size=_number(args.group_size),
        group_start=_number(args.group_start),
        group_stride=_number(args.group_stride),
        elements_in=_elements(args.dimensions) if inside is None else inside,
        elements_out=_number(args.elements_out),
        data_type=_text(args.data_type).lower(),
        source=_number(args.source),
        target=_number(args.target),
        sequence=_number(args.sequence),
    )


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return value if is_count else None


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = str(value)
    return value[:_CHARACTERS] if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _elements(raw: msgspec.Raw) -> int | None:
    """The number of elements that tensors of the dimensions `[[2, 3], [4], []]` hold together; scalars are left out."""
    total = sum(count_elements(item) or 0 for item in read_dimensions(raw) or [])
    return total if 0 < total < _LARGEST else None
