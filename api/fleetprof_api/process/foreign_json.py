"""The one door for JSON that others wrote, before it becomes a report, a summary or a ledger.

Guarantees: pure; behind it every text is printable (`plain_text`) and at most so long, every whole number fits 64 bits,
no number is so large that arithmetic with it leaves the range of a float, and a document of a few bytes a value does
not become a hundred times as large in memory. A document without anything to change is the same bytes. It costs a tenth
of a second for 10 MB: searches, no walk through objects.
"""

import json
import re
from functools import cache
from typing import Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.plain_text import make_printable

MOST_TEXT_BYTES: Final = 16 << 10
"""Names of kernels from C++ templates have a few thousand."""
MOST_OBJECTS: Final = 1 << 20
MOST_VALUES: Final = 8 << 20
"""A report of 10,000 ranks has 4 million, and half a million objects."""
_ESCAPES: Final = re.compile(r'((?:\\u[0-9a-fA-F]{4})+)|\\([bfnrt])|\\["\\/]')
# The whole part, the fraction and the exponent of a number; 9e18 fits 63 bits.
_NUMBER: Final = rb"(?:[0-9]{1,18}+|[1-8][0-9]{18})(?:\.[0-9]{1,24}+)?+(?:[eE][+-]?[0-9]{1,2}+)?+(?![0-9.eE])"


class OutOfBounds(FleetprofError, ValueError):
    """A text or a number that no writer of ours makes; the message says which."""


def pass_door(document: bytes, most_text_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """The document with printable texts. Raises OutOfBounds; whether it is JSON at all is for its decoder to say."""
    if document.count(b"{") > MOST_OBJECTS or document.count(b",") > MOST_VALUES:
        raise OutOfBounds(f"it has more than {MOST_OBJECTS:,} objects or {MOST_VALUES:,} values")
    end = 0 if (fitting := _fitting(most_text_bytes).match(document)) is None else fitting.end()
    if end < len(document):
        what = f"a text of more than {most_text_bytes:,} bytes" if document[end : end + 1] == b'"' else "a number"
        raise OutOfBounds(f"{what} at byte {end:,} is out of bounds")
    if document.isascii() and b"\x7f" not in document:
        return document if b"\\" not in document else _ESCAPES.sub(_unescape, document.decode()).encode()
    try:
        text = document.decode()
    except UnicodeDecodeError:
        raise OutOfBounds("it is not UTF-8") from None
    return _ESCAPES.sub(_unescape, _show_raw(text)).encode()


@cache
def _fitting(most_text_bytes: int) -> re.Pattern[bytes]:
    """As much of a document as is within bounds. The second form of a text, with escapes, is slower to follow."""
    text = rb'"[^"\\]{0,%d}+"|"(?:[^"\\]|\\.){0,%d}+"' % (most_text_bytes, most_text_bytes)
    return re.compile(rb'(?:[^"0-9]++|%s|%s)*+' % (text, _NUMBER), re.DOTALL)


def _show_raw(text: str) -> str:
    """The document with its raw characters made printable. Control characters below 32 stand between texts only."""
    hidden = "".join(character for character in set(text) if character > "~" and not character.isprintable())
    return re.sub(f"[{re.escape(hidden)}]", lambda found: make_printable(found[0]), text) if hidden else text


def _unescape(found: re.Match[str]) -> str:
    if found[1] is None and found[2] is None:
        return found[0]
    text = json.loads(f'"{found[0]}"')
    return found[0] if text.isprintable() else json.dumps(make_printable(text))[1:-1]
