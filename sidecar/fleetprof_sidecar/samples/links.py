"""The host's (or pod's) network and InfiniBand links: their counters, and their speed where they say it.

Guarantees: what cannot be read is left out or None, and never an error. Sources: proc(5) `net/dev`; sysfs-class-net
`speed` (Mb/s; virtual interfaces have none, or -1); sysfs-class-infiniband `rate` ("400 Gb/sec (4X NDR)") and port
counters, which count 4-byte words (InfiniBand specification, PortCountersExtended).
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_WORD_BYTES: Final = 4
_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) Gb/sec")


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """Counters since boot; `bytes_per_s` is the speed of one direction, 0 where nobody says it."""

    received_bytes: int
    sent_bytes: int
    bytes_per_s: int = 0


def read_network(proc: Path, sys: Path | None = None) -> dict[str, NetworkLink] | None:
    """All interfaces but loopback by name; with `sys`, their speeds as well. None: unreadable."""
    links: dict[str, NetworkLink] = {}
    try:
        for line in (proc / "net/dev").read_text().splitlines()[2:]:
            name, _, counters = line.partition(":")
            name = name.strip()
            if name != "lo":
                fields = counters.split()
                speed = _read_speed(sys / "class/net" / name / "speed") if sys is not None else 0
                links[name] = NetworkLink(int(fields[0]), int(fields[8]), speed)
    except (OSError, ValueError, IndexError):
        return None
    return links


def read_infiniband(sys: Path) -> dict[str, NetworkLink] | None:
    """All ports by device and number. None: there are none, or they are unreadable."""
    links: dict[str, NetworkLink] = {}
    try:
        for counters in sys.glob("class/infiniband/*/ports/*/counters"):
            port = counters.parent
            received = int((counters / "port_rcv_data").read_text()) * _WORD_BYTES
            sent = int((counters / "port_xmit_data").read_text()) * _WORD_BYTES
            links[f"{port.parent.parent.name}/{port.name}"] = NetworkLink(received, sent, _read_rate(port / "rate"))
    except (OSError, ValueError):
        return None
    return links or None


def _read_speed(path: Path) -> int:
    try:
        return max(0, int(path.read_text())) * 1_000_000 // 8
    except (OSError, ValueError):
        return 0


def _read_rate(path: Path) -> int:
    try:
        match = _RATE.match(path.read_text())
    except (OSError, ValueError):
        return 0
    return int(float(match[1]) * 1_000_000_000 / 8) if match else 0
