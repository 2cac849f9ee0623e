"""The webhook's certificate comes late, is renewed, and is half written for a moment."""

import socket
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path

from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.injection.webhook_certificate import WebhookCertificate


def write(directory: Path) -> Certificates:
    made = renew_certificates(Certificates(), ["hub"], datetime.now(UTC))
    for name, data in (("ca.crt", made.ca_crt), ("tls.crt", made.tls_crt), ("tls.key", made.tls_key)):
        (directory / name).write_bytes(data)
    return made


def shown_certificate(context: ssl.SSLContext) -> str:
    """The certificate that a new connection is shown."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with context.wrap_socket(theirs, server_side=True) as served:
            served.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with client.wrap_socket(ours) as connected:
        shown = connected.getpeercert(binary_form=True)
        connected.send(b"x")
    thread.join()
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown)


def test_nothing_can_be_served_before_the_files_are_there(tmp_path: Path) -> None:
    files = WebhookCertificate(tmp_path, tmp_path / "ca.crt")
    assert files.load() is False
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / name).touch()
    assert files.load() is False
    made = write(tmp_path)
    assert files.load() is True
    assert files.authority.encode() == made.ca_crt


def test_a_renewed_certificate_is_shown_to_the_next_connection(tmp_path: Path) -> None:
    files = WebhookCertificate(tmp_path, tmp_path / "ca.crt")
    first = write(tmp_path)
    files.load()
    assert shown_certificate(files.context) == first.tls_crt.decode()
    second = write(tmp_path)
    assert files.load() is True
    assert shown_certificate(files.context) == second.tls_crt.decode()
    assert files.authority.encode() == second.ca_crt


def test_a_pair_that_does_not_fit_leaves_the_last_good_one(tmp_path: Path) -> None:
    files = WebhookCertificate(tmp_path, tmp_path / "ca.crt")
    first = write(tmp_path)
    files.load()
    (tmp_path / "tls.key").write_bytes(renew_certificates(Certificates(), ["x"], datetime.now(UTC)).tls_key)
    assert files.load() is True
    assert shown_certificate(files.context) == first.tls_crt.decode()
    (tmp_path / "tls.crt").unlink()
    assert files.load() is True
