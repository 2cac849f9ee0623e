"""Reads the dimensions of an event's tensors as Kineto writes them: `[[32, 512], [], [[4], [5, 6]]]`.

`[]` is what is no tensor, or a tensor without dimensions; a list of tensors stands one level deeper. Guarantees: text
that is not of this kind counts as unsaid as a whole (other nesting, negative, fractional or huge sizes); nothing is
raised.
"""

from typing import Any, Final

import msgspec

from fleetprof_analyzer.reading.event import REFUSALS

_LARGEST: Final = 1 << 62


def read_dimensions(raw: msgspec.Raw | bytes) -> list[Any] | None:
    """The list itself, where `count_elements` can count each of its items."""
    try:
        value = msgspec.json.decode(raw) if raw else None
    except REFUSALS:
        return None
    known = isinstance(value, list) and all(count_elements(item) is not None for item in value)
    return value if known else None


def count_elements(item: Any) -> int | None:
    """The number of elements that a tensor of these dimensions holds, or all tensors of a list; 0 for `[]`."""
    if not isinstance(item, list):
        return None
    if all(isinstance(part, list) for part in item):
        counts = [_multiply(part) for part in item]
        total = sum(count for count in counts if count is not None)
        return None if None in counts or total >= _LARGEST else total
    return _multiply(item)


def _multiply(sizes: list[Any]) -> int | None:
    if not all(type(size) is int and 0 <= size < _LARGEST for size in sizes):
        return None
    if not sizes or 0 in sizes:
        return 0
    product = 1
    for size in sizes:
        product *= size
        if product >= _LARGEST:
            return None
    return product
