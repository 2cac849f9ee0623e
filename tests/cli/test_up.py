"""`fleetprof up`: one per state directory, closed to the network without TLS, gone without a trace."""

import datetime
import ipaddress
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fleetprof_cli.run_folder import run_folders
from fleetprof_cli.state import StateDirectory, port_is_free
from local_system import wait_until

Finished = subprocess.CompletedProcess[str]
Start = Callable[..., subprocess.Popen]


def make_certificate(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1: (certificate file, key file)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleetprof test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_without_a_trace(hub: subprocess.Popen, state: StateDirectory, number: signal.Signals) -> None:
    record = state.hub()
    assert record is not None
    hub.send_signal(number)
    assert hub.wait(60) == 0
    assert state.hub() is None
    assert port_is_free("127.0.0.1", int(record.address.rpartition(":")[2]))


def test_the_next_one_takes_the_same_port(hub: subprocess.Popen, start: Start, state: StateDirectory) -> None:
    before = state.hub()
    hub.kill()
    hub.wait()
    start("up")
    wait_until(lambda: (now := state.hub()) and before and now.pid != before.pid, "the next hub")
    assert before is not None
    assert (after := state.hub()) is not None
    assert after.address == before.address


def test_ports_that_others_took_are_given_up(start: Start, state: StateDirectory) -> None:
    state.prepare()
    before = state.ports()
    with socket.create_server(("127.0.0.1", before.hub)), socket.create_server(("127.0.0.1", before.uploads)):
        start("up")
        record = wait_until(state.hub, "the hub")
    assert record.address == f"127.0.0.1:{state.ports().hub}" != f"127.0.0.1:{before.hub}"
    assert state.ports().uploads != before.uploads


def test_a_port_where_a_job_looks_for_the_hub_is_not_given_up(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory
) -> None:
    job = start("run", "--name", "here", "--", "sleep", "60")
    wait_until(lambda: (state.path / "runs").is_dir() and run_folders(state)[0].record(), "the job")
    before = state.ports()
    with socket.create_server(("127.0.0.1", before.hub)):
        done = fleetprof("up")
    assert done.returncode == 1
    assert f"port {before.hub}, where the job 'here' that runs (`fleetprof run`, pid {job.pid})" in done.stderr
    assert state.ports() == before
    # A port for uploads is in every grant: no job remembers it.
    with socket.create_server(("127.0.0.1", before.uploads)):
        start("up")
        record = wait_until(state.hub, "the hub")
    assert record.address == f"127.0.0.1:{before.hub}"
    wait_until(lambda: '"name": "here"' in fleetprof("list", "-o", "json").stdout, "the sidecar")


def test_a_second_one_is_refused(hub: subprocess.Popen, fleetprof: Callable[..., Finished]) -> None:
    done = fleetprof("up")
    assert done.returncode == 1
    assert f"already runs with this state directory (pid {hub.pid})" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:0"], "plain text: give --tls-cert and --tls-key, or listen on 127.0.0.1"),
        (["--listen", "nowhere"], "must be HOST:PORT"),
        (["--store", "gs://x"], "must be a directory or s3://bucket/prefix"),
        (["--s3-endpoint", "http://h:1", "--store", "x"], "--s3-endpoint needs --store s3://"),
    ],
)
def test_a_wrong_command_line_is_code_2(fleetprof: Callable[..., Finished], words: list[str], said: str) -> None:
    done = fleetprof("up", *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_a_store_that_cannot_be_used_is_named(fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = fleetprof("up", "--store", str(tmp_path / "file" / "store"))
    assert done.returncode == 1
    assert f"cannot use the store {tmp_path}/file/store" in done.stderr


def test_with_tls_commands_and_sidecars_find_it(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory, tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path)
    start("up", "--tls-cert", certificate, "--tls-key", key)
    wait_until(state.hub, "the hub")
    assert fleetprof("list", "-o", "json").returncode == 0
    start("run", "--name", "secret", "--", "sleep", "60")
    wait_until(lambda: '"name": "secret"' in fleetprof("list", "-o", "json").stdout, "the sidecar")


def test_a_key_that_does_not_fit_is_refused(fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    certificate, _ = make_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    _, key = make_certificate(tmp_path / "other")
    done = fleetprof("up", "--tls-cert", certificate, "--tls-key", key)
    assert done.returncode == 2
    assert "cannot be used together" in " ".join(done.stderr.split())
