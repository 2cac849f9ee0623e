"""Where `fleetprof up` listens, and what it takes to listen there.

Guarantees: nothing but loopback is served without TLS, because the token and the traces would cross the network in
plain text.
"""

import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """HOST:PORT; port 0 stands for the port kept in the state directory."""

    host: str
    port: int

    def is_loopback(self) -> bool:
        """Tells whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def advertised_host(self) -> str:
        """The name under which others reach it: this machine's own when it listens on all addresses."""
        return socket.getfqdn() if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound


def parse_listen(text: str) -> ListenAddress:
    """What `--listen` means. Raises ValueError with the rule."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} must be HOST:PORT, for example 127.0.0.1:0 (0: any free port)")
    return ListenAddress(host, int(port))


def join_address(host: str, port: int) -> str:
    """HOST:PORT with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the server's certificate chain, its key, and what clients check it with."""

    certificate: Path
    key: Path
    authority: Path

    def pem_pair(self) -> tuple[bytes, bytes]:
        """(certificate chain, key) as gRPC wants them. Raises OSError."""
        return self.certificate.read_bytes(), self.key.read_bytes()

    def server_context(self) -> ssl.SSLContext:
        """For the upload server. Raises OSError (ssl.SSLError included) when the files do not fit."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context
