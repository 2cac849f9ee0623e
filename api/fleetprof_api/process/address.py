"""Addresses as settings write them: HOST:PORT, and which of them cannot be reached from another machine."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host and a port; where it is listened on, port 0 stands for any free one."""

    host: str
    port: int

    def text(self) -> str:
        """HOST:PORT, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str, least_port: int = 0) -> HostPort:
    """The host and port of `HOST:PORT` or `[IPV6]:PORT`. Raises ValueError with the rule."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not least_port <= int(port) <= 65535:
        raise ValueError(f"{text!r} must be HOST:PORT with a port from {least_port} to 65535")
    return HostPort(host, int(port))


def is_loopback(target: str) -> bool:
    """Tells if HOST:PORT or unix:PATH is this machine alone. A name other than localhost is another machine."""
    host = target.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host == "localhost" or target.startswith("unix:/"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
