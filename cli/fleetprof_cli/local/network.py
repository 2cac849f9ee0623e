"""The place where a hub listens on the network, and the certificate that it shows there.

Guarantees: nothing is served on the network without TLS, loopback included: whoever has a port of it, has it only until
another user's process takes it.
"""

import datetime
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from fleetprof_api.process.address import HostPort

from fleetprof_cli.local.state import StateDirectory


def advertise(listen: HostPort, port: int) -> HostPort:
    """The address at which others reach `port`: by this machine's own name when it listens on all addresses."""
    is_any = listen.host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
    return HostPort(socket.getfqdn() if is_any else listen.host, port)


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


def make_certificate(host: str, now: datetime.datetime) -> tuple[bytes, bytes]:
    """A certificate for `host` that signs itself, and its key, both PEM; good for a year.

    Whoever reads it from the state directory knows the one server that has the key.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fleetprof up")])
    try:
        shown: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        shown = x509.DNSName(host)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks of other machines
        .not_valid_after(now + datetime.timedelta(days=365))
        .add_extension(x509.SubjectAlternativeName([shown]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), secret


def own_certificate(state: StateDirectory, listen: HostPort) -> TlsFiles:
    """A new certificate in the state directory for a hub that listens there. Raises Failure."""
    certificate_file, key_file = state.certificate_files()
    certificate, key = make_certificate(advertise(listen, listen.port).host, datetime.datetime.now(datetime.UTC))
    state.write(key_file, key)
    state.write(certificate_file, certificate)
    return TlsFiles(certificate_file, key_file, certificate_file)
