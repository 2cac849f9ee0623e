"""The memory that asyncio takes for a TLS connection, before its peer has said a word.

Each has a buffer of 256 KiB for what comes, made at once: 512 silent connections are 130 MiB, more than a process of
ours has to spare. A TLS record has 16 KiB. Source: asyncio.sslproto of CPython 3.11 to 3.14.
"""

from asyncio.sslproto import SSLProtocol
from typing import Final

BUFFER_BYTES: Final = 32 << 10


def make_small() -> None:
    """For all connections that this process makes or takes from now on."""
    SSLProtocol.max_size = BUFFER_BYTES
