"""A certificate that cert-manager renews as files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.identity.mounted_certificate import MountedCertificate


def write(directory: Path) -> Certificates:
    made = renew_certificates(Certificates(), ["hub"], datetime.now(UTC))
    (directory / "tls.crt").write_bytes(made.tls_crt)
    (directory / "tls.key").write_bytes(made.tls_key)
    return made


def test_a_renewed_pair_is_served(tmp_path: Path) -> None:
    first = write(tmp_path)
    mounted = MountedCertificate(tmp_path)
    assert mounted.current().certificate_chain == first.tls_crt
    second = write(tmp_path)
    assert mounted.current().private_key == second.tls_key


def test_files_that_are_gone_leave_the_last_pair(tmp_path: Path) -> None:
    first = write(tmp_path)
    mounted = MountedCertificate(tmp_path)
    (tmp_path / "tls.key").unlink()
    assert mounted.current().certificate_chain == first.tls_crt


def test_files_that_are_not_there_at_the_start_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must hold tls\.crt and tls\.key that fit together"):
        MountedCertificate(tmp_path)
