"""The form of a timeline file: a preamble, a header in JSON, and blocks that are fetched alone.

Guarantees: equal headers and blocks give equal bytes; a reader checks magic, version, lengths and checksums before it
allocates what they ask for, and refuses what does not fit with a sentence.
"""

import struct
import zlib
from typing import Final, TypeVar

import msgspec
from isal import igzip, isal_zlib

MAGIC: Final = b"FPTL"
MAJOR: Final = 1
MINOR: Final = 0
MOST_HEADER_BYTES: Final = 64 << 20
MOST_BLOCK_BYTES: Final = 64 << 20
# magic, major, minor, header's length, its length decompressed, its crc32, length of the body
_PREAMBLE: Final = struct.Struct("<4sHHIIIQ")
PREAMBLE_BYTES: Final = _PREAMBLE.size
_LEVEL: Final = 1

Header = TypeVar("Header", bound=msgspec.Struct)


class Unreadable(ValueError):
    """Not a timeline file that can be read here; the message says what is wrong with it."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Where a compressed block lies in the body, and what must be true of it. Offsets count from the body's start."""

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
    preamble = _PREAMBLE.pack(MAGIC, MAJOR, MINOR, len(packed), len(text), zlib.crc32(packed), body.length)
    return b"".join((preamble, packed, *body.parts()))


class Container:
    """A file as it was read, whole. Raises Unreadable where preamble, header or lengths are not what they say."""

    def __init__(self, data: bytes) -> None:
        if len(data) < PREAMBLE_BYTES:
            raise Unreadable(f"{len(data)} bytes are too few for a timeline")
        magic, major, minor, length, decoded, crc32, body = _PREAMBLE.unpack_from(data)
        if magic != MAGIC:
            raise Unreadable("not a timeline: it begins with other bytes")
        if major != MAJOR:
            raise Unreadable(f"a timeline of form {major}.{minor}; this fleetprof reads {MAJOR}: upgrade fleetprof")
        if length > MOST_HEADER_BYTES or decoded > MOST_HEADER_BYTES:
            raise Unreadable(f"a header of {max(length, decoded):,} bytes, {MOST_HEADER_BYTES:,} are allowed")
        if PREAMBLE_BYTES + length + body != len(data):
            raise Unreadable(f"{len(data):,} bytes, its preamble says {PREAMBLE_BYTES + length + body:,}")
        self._body = memoryview(data)[PREAMBLE_BYTES + length :]
        packed = data[PREAMBLE_BYTES : PREAMBLE_BYTES + length]
        self._header = _decompress(packed, decoded, crc32, "the header")

    def header(self, form: type[Header]) -> Header:
        """The header, of this form. Raises Unreadable."""
        try:
            return msgspec.json.decode(self._header, type=form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(f"the header is not one: {error}"[:300]) from None

    def block(self, block: Block, what: str, expected_bytes: int) -> bytes:
        """A block's bytes, decompressed; there must be `expected_bytes` of them. Raises Unreadable."""
        if min(block.offset, block.length, block.decoded) < 0:
            raise Unreadable(f"{what}: a negative offset or length")
        if block.offset + block.length > len(self._body):
            raise Unreadable(f"{what}: ends behind the file's end")
        if block.decoded != expected_bytes:
            raise Unreadable(f"{what}: {block.decoded:,} bytes, its rows are {expected_bytes:,}")
        if block.decoded > MOST_BLOCK_BYTES or block.length > MOST_BLOCK_BYTES:
            raise Unreadable(f"{what}: {block.decoded:,} bytes, {MOST_BLOCK_BYTES:,} are allowed")
        packed = bytes(self._body[block.offset : block.offset + block.length])
        return _decompress(packed, block.decoded, block.crc32, what)


def _decompress(packed: bytes, decoded: int, crc32: int, what: str) -> bytes:
    if zlib.crc32(packed) != crc32:
        raise Unreadable(f"{what}: its checksum is wrong")
    inflate = zlib.decompressobj(31)
    try:
        data = inflate.decompress(packed, decoded + 1)
    except zlib.error as error:
        raise Unreadable(f"{what}: {error}") from None
    if len(data) != decoded or not inflate.eof:
        raise Unreadable(f"{what}: it does not hold the {decoded:,} bytes that it says")
    return data
