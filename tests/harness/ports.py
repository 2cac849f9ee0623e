"""Ports for servers that a test starts later, or more than once.

Guarantees: nobody listens there now, and no connection takes one as its near end meanwhile, because they lie below the
range from which the kernel does that.
"""

import random
import socket
from pathlib import Path
from typing import Final

_FIRST: Final = 10_240
_ENDS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def find_ports(count: int) -> list[int]:
    """Different free ports on 127.0.0.1, by chance, so that tests beside each other find others."""
    found: list[int] = []
    behind = int(_ENDS.read_text().split()[0])
    for port in random.SystemRandom().sample(range(_FIRST, behind), behind - _FIRST):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
