"""Turns a file object with a plain or gzip trace into blocks of plain bytes.

Guarantees: streams (memory of a few blocks); several gzip members in a row are read as one; a cut or damaged gzip file
yields what stands before the damage and counts the problem; a bomb ends at `TraceLimits.decoded_bytes`.
Source: RFC 1952; isal because it gunzips four times faster than zlib.
"""

from collections.abc import Iterator
from typing import IO, Final, cast

from isal import isal_zlib

from fleetprof_analyzer.trace.limits import TraceLimits, refuse
from fleetprof_analyzer.trace.problems import ProblemKind, Problems

# isal types its error as a value, not as a class.
_DAMAGED: Final = cast("type[Exception]", isal_zlib.error)
_READ_BYTES: Final = 64 << 10
# What a damaged place can cost at most, since isal drops the output of the call that meets it.
_GUNZIP_BYTES: Final = 64 << 10
_BLOCK_BYTES: Final = 1 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31


def read_blocks(file: IO[bytes], problems: Problems, limits: TraceLimits) -> Iterator[bytes]:
    """Yields the file's plain content in blocks of at most about 1 MiB. Raises LimitExceeded, OSError of the file."""
    first = file.read(_READ_BYTES)
    if not first:
        problems.note(ProblemKind.EMPTY_FILE)
        return
    blocks = _gunzip(first, file, problems) if first.startswith(_GZIP_MAGIC) else _plain(first, file)
    total = 0
    for block in blocks:
        total += len(block)
        if total > limits.decoded_bytes:
            raise refuse("the trace, decompressed,", limits.decoded_bytes, "bytes")
        yield block


def _plain(first: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield first
    while block := file.read(_BLOCK_BYTES):
        yield block


def _gunzip(first: bytes, file: IO[bytes], problems: Problems) -> Iterator[bytes]:
    decoder = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
    data = first
    while data:
        try:
            # A bounded answer keeps a bomb from filling memory; the rest waits in unconsumed_tail.
            block = decoder.decompress(data, _GUNZIP_BYTES)
        except _DAMAGED as error:
            problems.add(ProblemKind.CORRUPT_GZIP, f"{error}; what stands before was read")
            return
        if block:
            yield block
        if not decoder.eof:
            data = decoder.unconsumed_tail or file.read(_READ_BYTES)
            continue
        data = decoder.unused_data or file.read(_READ_BYTES)
        if not data:
            return
        if not data.startswith(_GZIP_MAGIC):
            if data.strip(b"\0"):
                problems.add(ProblemKind.CORRUPT_GZIP, "bytes that are no gzip follow its end; they were left out")
            return
        decoder = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
    problems.note(ProblemKind.TRUNCATED)
