"""The owner of a connection of this machine, and the listener of a port, by the kernel's tables of sockets.

A cookie of 127.0.0.1 reaches whoever listens at any port there, and a port is open to every user of the machine; the
kernel alone says who is at the other end. Source: proc(5), /proc/net/tcp; its addresses have the machine's byte order.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"
_MAPPED: Final = "0000000000000000FFFF0000"
"""An IPv4 address in the table of IPv6, as the sockets of some programs have it."""
_ANYWHERE: Final = frozenset({"00000000", "0" * 32})

Address = tuple[str, int]


def is_of_this_user(client: Address, server: Address) -> bool:
    """Tells if the process at the client's end is this user's, or root's. True where the kernel has no such tables."""
    if not any(table.exists() for table in _TABLES):
        return True
    wanted = (_encode(client), _encode(server))
    return _find(lambda local, remote, _state: (local, remote) == wanted) in (os.getuid(), 0)


def find_listener(port: int) -> int | None:
    """The user who listens at this port of 127.0.0.1; None where nobody does, or nobody says so."""
    places = {_encode(("127.0.0.1", port)), *(f"{anywhere}:{port:04X}" for anywhere in _ANYWHERE)}
    return _find(lambda local, _remote, state: state == _LISTENS and local in places)


def _find(fits: Callable[[str, str, str], bool]) -> int | None:
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            local, remote = (words[at].removeprefix(_MAPPED) for at in (1, 2))
            if fits(local, remote, words[3]):
                return int(words[7])
    return None


def _encode(address: Address) -> str:
    host, port = address
    number = int.from_bytes(bytes(map(int, host.split("."))), sys.byteorder)
    return f"{number:08X}:{port:04X}"
