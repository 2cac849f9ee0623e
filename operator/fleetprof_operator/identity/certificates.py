"""An authority of our own and its one certificate, the hub's or the webhook's: what there is, and what is due.

Guarantees: pure, with the time passed in; what is good stays byte for byte. A certificate lives 90 days and is renewed
at two thirds of that; the authority lives ten years likewise, and the old one stays in the bundle beside the new one,
so that who trusts the bundle trusts both. Source: RFC 5280; ECDSA P-256.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=3650)
CERTIFICATE_LIFE: Final = timedelta(days=90)
RENEWED_AFTER: Final = 2 / 3
# Clocks of the cluster's machines may be behind ours.
_BACKDATED: Final = timedelta(minutes=10)
_MOST_AUTHORITIES: Final = 3
_MOST_TRUSTED: Final = 8


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM texts as they are in the Secret; `ca.crt` is a bundle, the current authority first."""

    ca_crt: bytes = b""
    ca_key: bytes = b""
    tls_crt: bytes = b""
    tls_key: bytes = b""


def renew_certificates(found: Certificates, names: Sequence[str], now: datetime) -> Certificates:
    """`found`, or with what was missing, unusable, for other names or old made anew."""
    authority = _read_authority(found, now)
    bundle, key_text = found.ca_crt, found.ca_key
    if authority is None:
        certificate, key = _make_authority(now)
        authority = certificate, key
        bundle = _bundle(certificate, found.ca_crt, now)
        key_text = _write_key(key)
    if bundle == found.ca_crt and _is_good(found, authority[0], names, now):
        return found
    leaf, leaf_key = _make_leaf(authority, names, now)
    return Certificates(
        ca_crt=bundle,
        ca_key=key_text,
        tls_crt=leaf.public_bytes(serialization.Encoding.PEM),
        tls_key=_write_key(leaf_key),
    )


def join_authorities(bundle: bytes, *others: bytes, now: datetime) -> bytes:
    """`bundle`, and what is good of the others; `bundle` as it is when they have nothing else."""
    known = set(x509.load_pem_x509_certificates(bundle))
    joined = bundle
    for text in others:
        try:
            found = x509.load_pem_x509_certificates(text)
        except ValueError:
            continue
        for certificate in found:
            if certificate not in known and certificate.not_valid_after_utc > now and len(known) < _MOST_TRUSTED:
                known.add(certificate)
                joined += certificate.public_bytes(serialization.Encoding.PEM)
    return joined


def renewal_time(certificate: x509.Certificate) -> datetime:
    """The time at which two thirds of its life are over."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begin + (end - begin) * RENEWED_AFTER


Authority = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def _read_authority(found: Certificates, now: datetime) -> Authority | None:
    """The authority when it can still sign a certificate that it outlives."""
    try:
        certificate = x509.load_pem_x509_certificates(found.ca_crt)[0]
        key = serialization.load_pem_private_key(found.ca_key, None)
    except (ValueError, TypeError, IndexError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return (certificate, key) if now < renewal_time(certificate) else None


def _is_good(found: Certificates, authority: x509.Certificate, names: Sequence[str], now: datetime) -> bool:
    try:
        leaf = x509.load_pem_x509_certificate(found.tls_crt)
        key = serialization.load_pem_private_key(found.tls_key, None)
        leaf.verify_directly_issued_by(authority)
        written = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    if key.public_key() != leaf.public_key() or now >= renewal_time(leaf):
        return False
    return set(written.get_values_for_type(x509.DNSName)) == set(names)


def _make_authority(now: datetime) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    # The moment tells two authorities apart for whoever looks at a bundle.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fleetprof {now:%Y-%m-%dT%H:%M:%SZ}")])
    usage = _key_usage(signs=True)
    certificate = (
        _begin(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _make_leaf(authority: Authority, names: Sequence[str], now: datetime) -> Authority:
    issuer, issuer_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    certificate = (
        _begin(name, issuer.subject, key, now, CERTIFICATE_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return certificate, key


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _bundle(newest: x509.Certificate, older: bytes, now: datetime) -> bytes:
    try:
        others = [c for c in x509.load_pem_x509_certificates(older) if c.not_valid_after_utc > now]
    except ValueError:
        others = []
    chosen = [newest, *others][:_MOST_AUTHORITIES]
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chosen)


def _write_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
