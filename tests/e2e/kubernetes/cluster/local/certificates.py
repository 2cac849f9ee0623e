"""The cluster's certificate authority and the certificates of its parts.

Guarantees: keys are written 0600; everything is valid for ten years, longer than any test cluster lives.
"""

import base64
import datetime
import ipaddress
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 3650


class Authority:
    """A certificate authority that writes what it signs into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate_file = folder / "ca.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("fleetprof-e2e")
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, common_name: str, organization: str = "", hosts: list[str] | None = None) -> None:
        """Writes `name.crt` and `name.key`, good for a server at `hosts` and for a client of that name."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(_name(common_name, organization), self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        (self.folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(self.folder / f"{name}.key", key)

    def write_kubeconfig(self, file: Path, name: str, server: str) -> None:
        """A kubeconfig for the client certificate `name`."""

        def encoded(part: str) -> str:
            return base64.b64encode((self.folder / part).read_bytes()).decode()

        cluster = {"server": server, "certificate-authority-data": encoded("ca.crt")}
        user = {"client-certificate-data": encoded(f"{name}.crt"), "client-key-data": encoded(f"{name}.key")}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fleetprof-e2e",
            "contexts": [{"name": "fleetprof-e2e", "context": {"cluster": "fleetprof-e2e", "user": name}}],
            "clusters": [{"name": "fleetprof-e2e", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
        }
        file.touch(0o600)
        file.write_text(yaml.safe_dump(content))


def write_token_key(folder: Path) -> None:
    """`sa.key` and `sa.pub`, with which service-account tokens are signed and checked."""
    key = rsa.generate_private_key(65537, 2048)
    _write_key(folder / "sa.key", key)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "sa.pub").write_bytes(public)


def _builder(subject: x509.Name, issuer: x509.Name, public_key: Any) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _name(common_name: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write_key(file: Path, key: Any) -> None:
    file.touch(0o600)
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
