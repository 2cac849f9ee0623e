"""A certificate and its key in files: what is there in the end is served, whatever the files go through."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.web.certificate_files import CertificateFiles, KeyPair


def write(directory: Path) -> KeyPair:
    made = renew_certificates(Certificates(), ["hub"], datetime.now(UTC))
    (directory / "tls.crt").write_bytes(made.tls_crt)
    (directory / "tls.key").write_bytes(made.tls_key)
    return KeyPair(made.tls_crt, made.tls_key)


def encrypt(file: Path) -> None:
    key = load_pem_private_key(file.read_bytes(), None)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no certificate": lambda folder: (folder / "tls.crt").unlink(),
    "no key": lambda folder: (folder / "tls.key").unlink(),
    "an empty key": lambda folder: (folder / "tls.key").write_bytes(b""),
    "half a certificate": lambda folder: (folder / "tls.crt").write_bytes((folder / "tls.crt").read_bytes()[:200]),
    "the key of another": lambda folder: (folder / "tls.key").write_bytes(
        renew_certificates(Certificates(), ["x"], datetime.now(UTC)).tls_key
    ),
    "an encrypted key": lambda folder: encrypt(folder / "tls.key"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_served_leaves_the_last_good_pair_and_is_logged_once(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = write(tmp_path)
    files = CertificateFiles(tmp_path)
    assert files.load() == first
    DAMAGES[damage](tmp_path)
    assert [files.load(), files.load()] == [first, first]
    (record,) = caplog.records
    assert f"the certificate {tmp_path}/tls.crt cannot be used: " in record.getMessage()
    second = write(tmp_path)
    assert files.load() == second


@pytest.mark.parametrize("damage", DAMAGES)
def test_until_there_is_a_good_pair_there_is_none(damage: str, tmp_path: Path) -> None:
    files = CertificateFiles(tmp_path)
    assert files.load() is None
    write(tmp_path)
    DAMAGES[damage](tmp_path)
    assert files.load() is None
    made = write(tmp_path)
    assert files.load() == made
