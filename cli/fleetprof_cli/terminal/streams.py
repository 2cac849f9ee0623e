"""Handles what the terminal cannot take: characters that its encoding lacks, a full disk behind it, a closed pipe.

Guarantees: a character that is lacking becomes one that looks alike, of the same width; a write that fails ends the
command with one sentence, and the interpreter's exit adds nothing to it.
"""

import codecs
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from fleetprof_cli.messages import Failure

_ERRORS: Final = "fleetprof.alike"
_ALIKE: Final = str.maketrans(
    {
        **dict.fromkeys("█━╸╺", "#"),
        "▓": "=",
        "▒": "+",
        **dict.fromkeys("░…·•", "."),
        **dict.fromkeys("–—−‑─", "-"),
        **dict.fromkeys("→↔", ">"),
        **dict.fromkeys("│", "|"),
        "µ": "u",
        "×": "x",
        "²": "2",
        "‰": "%",
    }
)
_LOST: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(_ALIKE)
    return "".join(character if character.isascii() else "?" for character in lacking), error.end


codecs.register_error(_ERRORS, _replace)


def make_encodable() -> None:
    """Has both streams write what they lack as something that looks alike; a closed one takes all and keeps nothing."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors=_ERRORS)  # type: ignore[union-attr]


def fit(text: str) -> str:
    """The text as stdout can take it: click writes UTF-8 to a terminal that knows ASCII only."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, _ERRORS).decode(encoding)


@contextmanager
def failed_writes() -> Iterator[None]:
    """Ends the command with a sentence where its output cannot be written."""
    try:
        yield
    except OSError as error:
        # Who opens a file names it in the error; what fails without a name is a stream.
        if error.filename is not None or error.errno not in _LOST:
            raise
        _abandon(sys.stdout)
        step = "" if error.errno == errno.EPIPE else "free some space there, or send the output elsewhere"
        raise Failure(f"cannot write the output: {error.strerror}", next_step=step) from None


def _abandon(stream: TextIO) -> None:
    """Throws away the rest of its buffer: writing it at exit would fail once more."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
