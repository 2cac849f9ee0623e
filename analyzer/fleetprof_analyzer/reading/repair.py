"""Makes JSON out of what PyTorch and its relatives sometimes write instead of JSON.

Seen in real traces: NaN, nan, -nan, Infinity, inf; Windows paths with lone backslashes; raw control characters; names
in broken UTF-8. Guarantees: valid JSON comes back unchanged; the replacement never changes a value that JSON allows.
"""

import re
from typing import Final

_TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?\b(?:nan|inf(?:inity)?)\b(?:\([a-z0-9_]*\))?', re.DOTALL | re.IGNORECASE
)
_BAD_IN_STRING: Final = re.compile(rb'[\x00-\x1f]|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\')
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def repair(text: bytes) -> bytes:
    """`text` with non-finite numbers as null, and broken escapes, control characters and UTF-8 made harmless."""
    return _TOKEN.sub(_repair_token, text.decode("utf-8", "replace").encode())


def _repair_token(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if not token.startswith(b'"'):
        return b"null"
    fixed = _BAD_IN_STRING.sub(_repair_escape, token)
    if _SURROGATE.search(fixed):
        kept = _PAIR.findall(fixed)
        pieces = [_SURROGATE.sub(rb"\\ufffd", piece) for piece in _PAIR.split(fixed)]
        fixed = pieces[0] + b"".join(pair + piece for pair, piece in zip(kept, pieces[1:], strict=True))
    return fixed


def _repair_escape(match: re.Match[bytes]) -> bytes:
    found = match[0]
    if found == b"\\":
        return rb"\\"
    return b"\\u%04x" % found[0] if found[0] < 0x20 else found
