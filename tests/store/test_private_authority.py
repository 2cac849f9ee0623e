"""A real S3 server with a certificate of a private authority: the hub signs, a sidecar uploads, an analysis reads."""

import hashlib
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from conftest import S3Server
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.settings import read_settings
from fleetprof_sidecar.capture.process_capture import StoredFile
from fleetprof_sidecar.conversation import SidecarConversation
from fleetprof_sidecar.delivery.upload import UploadBroken
from fleetprof_sidecar.delivery.upload_connections import UploadConnections
from fleetprof_sidecar.hub.address import HubAddress
from fleetprof_sidecar.hub.link import PROTOCOL_VERSION
from fleetprof_sidecar.obstacles import Obstacles
from fleetprof_store.base import StoreError, UploadPart
from fleetprof_store.s3.store import S3Store
from harness.memory_store import MemoryStore

pytestmark = pytest.mark.s3

KEY = "v1/team/uid/ranks/0/trace.json.gz"
DATA = b"a trace"
DIGEST = hashlib.sha256(DATA)
STORED = StoredFile(
    name="trace",
    size_bytes=len(DATA),
    sha256=DIGEST.hexdigest(),
    part_sizes=[len(DATA)],
    part_sha256=[DIGEST.hexdigest()],
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca.crt` as a site has it: with words around the certificate. Beside it are the server's certificate and key."""
    folder = tmp_path_factory.mktemp("authority")
    made = renew_certificates(Certificates(), ["localhost"], datetime.now(UTC))
    (folder / "ca.crt").write_text(f"# Zertifizierungsstelle für alle\n{made.ca_crt.decode()}")
    (folder / "tls.crt").write_bytes(made.tls_crt)
    (folder / "tls.key").write_bytes(made.tls_key)
    return folder / "ca.crt"


@pytest.fixture(scope="module")
def server(versitygw: Path, authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    files = authority.with_name("tls.crt"), authority.with_name("tls.key")
    running = S3Server(versitygw, tmp_path_factory.mktemp("private") / "data", files)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def store(server: S3Server, authority: Path, monkeypatch: pytest.MonkeyPatch) -> S3Store:
    """As the operator has it: the chart sets AWS_CA_BUNDLE."""
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))
    return server.make_store(server.make_bucket())


def connect(authority: Path, folder: Path) -> tuple[UploadConnections, pb.Welcome]:
    """A sidecar's uploads before it was welcomed, and what the operator's hub welcomes it with."""
    settings = read_settings(["--store", "s3://b", "--namespace", "n", "--store-authority", str(authority)], {})
    hub = Hub(store=MemoryStore(), settings=HubSettings(store_authority=settings.store_authority))
    sent: list[pb.HubMessage] = []
    link: Any = SimpleNamespace(send=sent.append)
    identity = pb.Identity(namespace="team", pod_name="p", pod_uid="u")
    hub.sessions.connect(pb.Hello(protocol_version=PROTOCOL_VERSION, sidecar_id="s", identity=identity), link)
    return UploadConnections(HubAddress(target="hub:1", token_file=folder / "token")), sent[0].welcome


def hear(uploads: UploadConnections, welcome: pb.Welcome) -> None:
    """The work of a sidecar with its welcome."""
    rest: Any = SimpleNamespace(set_interval=lambda interval_ns: None, ask_again=lambda: None)
    SidecarConversation(rest, "s", rest, rest, rest, rest, rest, uploads, Obstacles(), rest).note_connected(welcome)


async def test_a_sidecar_uploads_to_whom_the_hub_names_and_an_analysis_reads_it(
    store: S3Store, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(DATA)
    part = UploadPart(len(DATA), DIGEST.digest())
    grant = store.grant_upload(KEY, [part], lifetime_s=60)
    uploads, welcome = connect(authority, tmp_path)
    with pytest.raises(UploadBroken, match=r"CERTIFICATE_VERIFY_FAILED|SSLError"):
        uploads.put(path, STORED, grant.parts, threading.Event())

    hear(uploads, welcome)

    etags = uploads.put(path, STORED, grant.parts, threading.Event())
    store.complete_upload(KEY, grant.upload_id, [part], etags)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))  # the chart sets it in analyses
    signed = store.sign_read(KEY, lifetime_s=60)
    with urllib3.PoolManager(ssl_context=ssl.create_default_context(), retries=False) as http:
        assert http.request("GET", signed.url).data == DATA


def test_without_the_authority_the_store_says_what_is_wrong(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with pytest.raises(StoreError, match=r"(?i)certificate"):
        server.make_store("any").put("v1/a", b"")


async def test_a_sidecar_is_sent_certificates_and_nothing_else_of_the_file(authority: Path, tmp_path: Path) -> None:
    _, welcome = connect(authority, tmp_path)
    assert welcome.store_authority.startswith("-----BEGIN CERTIFICATE-----")
    assert "Zertifizierungsstelle" not in welcome.store_authority
