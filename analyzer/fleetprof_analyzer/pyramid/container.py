"""The form of a timeline file: a preamble, a header in JSON, and blocks that are fetched alone.

Guarantees: equal headers and blocks give equal bytes.
"""

import struct
import zlib
from typing import Final

import msgspec
from isal import igzip, isal_zlib

MAGIC: Final = b"FPTL"
MAJOR: Final = 1
MINOR: Final = 0
# magic, major, minor, header's length, its length decompressed, its crc32, length of the body
PREAMBLE: Final = struct.Struct("<4sHHIIIQ")
_LEVEL: Final = 1


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a compressed block in the body, with its checks. Offsets count from the body's start."""

    offset: int = 0
    length: int = 0
    decoded: int = 0
    crc32: int = 0


class Body:
    """Collects blocks, one after the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.length = 0

    def add(self, data: bytes) -> Block:
        """Compresses a block and says where it lies."""
        packed = compress(data)
        block = Block(offset=self.length, length=len(packed), decoded=len(data), crc32=isal_zlib.crc32(packed))
        self._parts.append(packed)
        self.length += len(packed)
        return block

    def parts(self) -> list[bytes]:
        """The compressed blocks, in the order of their offsets."""
        return self._parts


def compress(data: bytes) -> bytes:
    """gzip, without a time."""
    return bytes(igzip.compress(data, _LEVEL, mtime=0))


def pack(header: msgspec.Struct, body: Body) -> bytes:
    """The file's bytes."""
    text = msgspec.json.encode(header)
    packed = compress(text)
    preamble = PREAMBLE.pack(MAGIC, MAJOR, MINOR, len(packed), len(text), zlib.crc32(packed), body.length)
    return b"".join((preamble, packed, *body.parts()))
