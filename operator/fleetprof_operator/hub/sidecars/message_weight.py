"""The cost of a sidecar's message, told from its bytes before anything is made of them.

Two bytes on the wire can become a message object of some hundred bytes, and work on it; so elements are counted first,
and what would be too many is never decoded.

Guarantees: pure; no bytes raise anything but ProtocolError; the work is bounded by MAX_ELEMENTS, not by the length.
The weights are about what is kept (bytes) and done: a part is signed, an upload calls the store. Source: protobuf's
wire format.
"""

from typing import Final, NamedTuple

from fleetprof_operator.hub.sidecars.messages import ProtocolError

MAX_ELEMENTS: Final = 6000  # of one message: a hello may have 1,024 processes and 4,096 events
MESSAGE_WEIGHT: Final = 4 << 10
ELEMENT_WEIGHT: Final = 512
PART_WEIGHT: Final = 16 << 10
UPLOAD_WEIGHT: Final = 8 << 10
_UPLOAD_REQUEST, _UPLOAD_DONE = 4, 5  # fields of SidecarMessage


class MessageWeight(NamedTuple):
    """All that a message makes the hub do, and of it what holds the event loop at once."""

    total: int
    at_once: int


def weigh_message(data: bytes) -> MessageWeight:
    """The weight in bytes. Raises ProtocolError when there are too many elements; says nothing of malformed bytes."""
    later = 0
    elements = 0
    at = 0
    while at < len(data):
        field, begin, at = _next_field(data, at, len(data))
        if not begin:
            break
        here = begin
        parts = 0
        while here < at:
            _, inside, here = _next_field(data, here, at)
            if not inside:
                break
            parts += 1
            elements += 1
            if elements > MAX_ELEMENTS:
                raise ProtocolError(f"a message has more than {MAX_ELEMENTS} elements")
        later += parts * (PART_WEIGHT - ELEMENT_WEIGHT) if field == _UPLOAD_REQUEST else 0
        later += UPLOAD_WEIGHT if field in (_UPLOAD_REQUEST, _UPLOAD_DONE) else 0
    at_once = MESSAGE_WEIGHT + len(data) + elements * ELEMENT_WEIGHT
    return MessageWeight(at_once + later, at_once)


def _next_field(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """(field, where its content begins, where the next field begins); begin 0 when the bytes are none of ours."""
    tag, at = _read_varint(data, at, end)
    match tag & 7:
        case 0:
            begin = at
            _, at = _read_varint(data, at, end)
        case 1:
            begin, at = at, at + 8
        case 2:
            length, begin = _read_varint(data, at, end)
            at = begin + length
        case 5:
            begin, at = at, at + 4
        case _:
            return 0, 0, end
    return (tag >> 3, begin, at) if at <= end else (0, 0, end)


def _read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= end:
            break
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return 7, end  # no tag has wire type 7
