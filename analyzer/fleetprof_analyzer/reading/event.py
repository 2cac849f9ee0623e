"""The decoded part of one event of a trace: complete events, instants, and nothing of all others.

Guarantees: text of another kind than a measure expects costs that event at most, never its neighbours. Source: Trace
Event Format; the arguments as Kineto writes them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, Generic, TypeVar, Union

import msgspec

from fleetprof_analyzer.trace.trace import CATEGORIES, PYTHON_FUNCTION

Scalar = int | str | float | None
_UNSAID: Final = msgspec.Raw(b"")
_OTHER_PHASES: Final = "BEICbneSTpFstfPONDMVvRc()"
REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# Beside the numbers of `Category`: not kept, a frame of Python, a moment.
LEFT_OUT: Final = 255
FRAME: Final = 254
INSTANT: Final = 253


class _Coded(Enum):
    """A text with a code; any text that is no member's is `OTHER`."""

    code: int

    def __new__(cls, text: str, code: int) -> "_Coded":
        member = object.__new__(cls)
        member._value_, member.code = text, code
        return member

    @classmethod
    def _missing_(cls, value: object) -> "_Coded":
        del value
        return cls["OTHER"]


# A member is found without making a text of each event's category, and its code without looking that up.
EventCategory: Any = _Coded(
    "EventCategory",
    {  # type: ignore[arg-type]
        "OTHER": ("", LEFT_OUT),
        **{text: (text, LEFT_OUT) for text in ("gpu_user_annotation", "overhead", "cuda_sync", "Trace")},
        PYTHON_FUNCTION: (PYTHON_FUNCTION, FRAME),
        **{text: (text, int(category)) for text, category in CATEGORIES.items()},
    },
)


class _OfPhase:
    """In the place of a category where the phase says enough."""

    def __init__(self, code: int) -> None:
        self.code = code


class EventArgs(msgspec.Struct, gc=False):
    """The arguments of a complete event, as far as a measure reads them. What is Raw or Any may be of any kind.

    A count that is not said is -1, as one is where it says nothing that can be counted.
    """

    # In the order in which Kineto writes them: msgspec looks for the next key first.
    external_id: Scalar = msgspec.field(default=-1, name="External id")
    sequence_number: Scalar = msgspec.field(default=-1, name="Sequence number")
    device: Scalar = None
    stream: Scalar = None
    correlation: Scalar = -1
    bytes: Scalar = -1
    grid: msgspec.Raw = _UNSAID
    block: msgspec.Raw = _UNSAID
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")
    group_size: Any = msgspec.field(default=None, name="Group size")
    data_type: Any = msgspec.field(default=None, name="dtype")
    group_name: Any = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    group_start: Any = msgspec.field(default=None, name="Global rank start")
    group_stride: Any = msgspec.field(default=None, name="Global rank stride")
    source: Any = msgspec.field(default=None, name="Src Rank")
    target: Any = msgspec.field(default=None, name="Dst Rank")
    sequence: Any = msgspec.field(default=None, name="Seq")
    values: msgspec.Raw = msgspec.field(default=_UNSAID, name="Concrete Inputs")
    types: msgspec.Raw = msgspec.field(default=_UNSAID, name="Input type")
    dimensions: msgspec.Raw = msgspec.field(default=_UNSAID, name="Input Dims")
    # Of Ascend's recorder.
    task_type: Any = msgspec.field(default=None, name="Task Type")
    physical_stream: Scalar = msgspec.field(default=None, name="Physic Stream Id")
    connection: Scalar = msgspec.field(default=-1, name="connection_id")


class MemoryArgs(msgspec.Struct, gc=False):
    """The arguments of a `[memory]` instant."""

    total_reserved: Scalar = msgspec.field(default=None, name="Total Reserved")
    total_allocated: Scalar = msgspec.field(default=None, name="Total Allocated")
    device_id: Scalar = msgspec.field(default=None, name="Device Id")
    device_type: Scalar = msgspec.field(default=None, name="Device Type")


class Event(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """A complete event. `ts` stays digits: µs since 1970 that a float64 does not hold to the nanosecond."""

    cat: EventCategory | None = EventCategory.OTHER
    name: str = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: msgspec.Raw = _UNSAID
    dur: float | str | None = None
    args: EventArgs | None = None


class Instant(msgspec.Struct, gc=False, tag_field="ph", tag="i"):
    """A moment: of memory, or of the window."""

    cat: ClassVar = _OfPhase(INSTANT)
    name: str = ""
    ts: msgspec.Raw = _UNSAID
    args: MemoryArgs | None = None


class Passed(msgspec.Struct, gc=False):
    """An event that no measure reads: an arrow, a counter, metadata. A third of a trace may be these."""

    cat: ClassVar = _OfPhase(LEFT_OUT)


class _Phase(msgspec.Struct, gc=False):
    ph: str = ""


AnyEvent = Event | Instant | Passed
Decoded = TypeVar("Decoded", AnyEvent, msgspec.Raw)
_PASSED: Final = tuple(
    msgspec.defstruct("Passed", [], bases=(Passed,), gc=False, tag_field="ph", tag=phase) for phase in _OTHER_PHASES
)
_ANY_EVENT: Any = Union[(Event, Instant, *_PASSED)]
_ONE: Final[msgspec.json.Decoder[AnyEvent]] = msgspec.json.Decoder(_ANY_EVENT)
_PHASE: Final = msgspec.json.Decoder(_Phase)


def _decode_event(text: bytes) -> AnyEvent:
    """One event; one without a phase that the format knows is passed over. Raises one of `REFUSALS`."""
    try:
        return _ONE.decode(text)
    except msgspec.ValidationError:
        if _PHASE.decode(text).ph in ("X", "i", *_OTHER_PHASES):
            raise
        return Passed()


@dataclass(frozen=True, slots=True)
class Decoding(Generic[Decoded]):
    """Decodes the text of events: of a list of them, and of one. Both raise one of `REFUSALS`."""

    batch: Callable[[bytes], list[Decoded]]
    one: Callable[[bytes], Decoded]


AS_EVENTS: Final[Decoding[AnyEvent]] = Decoding(msgspec.json.Decoder(list[_ANY_EVENT]).decode, _decode_event)
AS_TEXT: Final[Decoding[msgspec.Raw]] = Decoding(
    msgspec.json.Decoder(list[msgspec.Raw]).decode, msgspec.json.Decoder(msgspec.Raw).decode
)
