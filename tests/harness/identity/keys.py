"""Keys that sign tokens, and a certificate for loopback."""

import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwt
from joserfc.jwk import RSAKey


class Signer:
    """One RSA key."""

    def __init__(self, key_id: str = "first") -> None:
        self._key = RSAKey.generate_key(2048, {"kid": key_id, "use": "sig", "alg": "RS256"})

    def public_keys(self) -> dict[str, Any]:
        """The JWKS document."""
        return {"keys": [self._key.as_dict(private=False)]}

    def sign(self, claims: dict[str, Any]) -> str:
        """A JWT; it begins now and lasts an hour, unless the claims say otherwise."""
        now = int(time.time())
        header = {"alg": "RS256", "kid": self._key.kid}
        return jwt.encode(header, {"iat": now, "exp": now + 3600} | claims, self._key)


def make_certificate(folder: Path, host: str = "") -> tuple[Path, Path]:
    """(certificate, key) as PEM files, for 127.0.0.1 or a host name; the certificate is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "the tests")])
    now = datetime.now(UTC)
    whose = x509.DNSName(host) if host else x509.IPAddress(ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([whose]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "server.crt", folder / "server.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths
