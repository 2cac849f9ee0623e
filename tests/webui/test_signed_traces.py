"""Traces that browsers fetch from the store: who gets an address, for how long; all else stays with the service."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from fleetprof_store.base import PartGrant
from fleetprof_store.s3.store import S3Store
from fleetprof_webui.access.local import LocalAccess
from fleetprof_webui.app import create_application
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.cluster.main import set_up_logs
from fleetprof_webui.reports.whole_reports import WholeReports
from fleetprof_webui.service import Service
from harness.memory_store import MemoryStore
from starlette.testclient import TestClient

from .conftest import HOST, ORIGIN, WRITE

TRACE = "/reports/team-a/slow/files/ranks/2/trace.json.gz"


class _Signing(MemoryStore):
    def __init__(self, other: MemoryStore) -> None:
        super().__init__()
        self.signatures: list[tuple[str, int, str]] = []
        for info in other.list("v1/"):
            self.put(info.key, other.get(info.key))

    def sign_read(self, key: str, *, lifetime_s: int, saved_as: str = "") -> PartGrant:
        self.signatures.append((key, lifetime_s, saved_as))
        return super().sign_read(key, lifetime_s=lifetime_s, saved_as=saved_as)


@pytest.fixture
def signing(store: MemoryStore) -> _Signing:
    return _Signing(store)


@pytest.fixture
def stranger(signing: _Signing, tmp_path: Path) -> TestClient:
    """Nobody who has signed in, at a service that signs traces."""
    catalog = Catalog(signing, open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    access = LocalAccess(may_capture=False, announce_token=lambda _token: None)
    service = Service(
        store=signing,
        catalog=catalog,
        access=access,
        reports=WholeReports(signing),
        captures=None,
        signs_traces=True,
    )
    client = TestClient(create_application(service, hosts=[HOST]), base_url=ORIGIN, follow_redirects=False)
    client.headers["X-Token"] = access.make_token()
    return client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """The same, signed in."""
    token = stranger.headers.pop("X-Token")
    assert stranger.post("/session", json={"token": token}, headers=WRITE).status_code == 204
    return stranger


def test_a_trace_is_fetched_from_the_store_within_five_minutes(client: TestClient, signing: _Signing) -> None:
    answered = client.get(TRACE)
    assert answered.status_code == 307
    assert answered.headers["cache-control"] == "no-store"
    assert answered.headers["referrer-policy"] == "no-referrer"
    address = answered.headers["location"]
    assert signing.fetch(address) == signing.get("v1/team-a/slow/ranks/2/trace.json.gz")
    ((key, lifetime_s, saved_as),) = signing.signatures
    assert (key, saved_as) == ("v1/team-a/slow/ranks/2/trace.json.gz", "slow-rank2-trace.json.gz")
    assert 0 < lifetime_s <= 300


@contextmanager
def logs_set_up(level: str) -> Iterator[None]:
    """As in the process, until the test ends."""
    names = (None, "fleetprof.audit", "httpx2", "uvicorn", "boto3", "botocore")
    before = [(logger, logger.level, list(logger.handlers)) for logger in map(logging.getLogger, names)]
    logging.getLogger().handlers.clear()  # pytest's are not to be closed
    try:
        set_up_logs(level)
        yield
    finally:
        for logger, before_level, handlers in before:
            logger.setLevel(before_level)
            logger.handlers[:] = handlers


def test_no_signature_is_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    def sign() -> str:
        address = store.sign_read("v1/team-a/slow/report.json", lifetime_s=300).url
        return parse_qs(urlsplit(address).query)["X-Amz-Signature"][0]

    store = S3Store("bucket", session=boto3.Session("AKIAIOSFODNN7EXAMPLE", "not-a-key"))
    with logs_set_up("debug"):
        logging.getLogger("fleetprof").debug("it is written down")
        signature = sign()
        log = capsys.readouterr().err
        assert "it is written down" in log
        assert signature not in log
        logging.getLogger("botocore").setLevel(logging.DEBUG)
        signature = sign()
        assert signature in capsys.readouterr().err, "boto3 writes down what it signs"


@pytest.mark.attack
def test_who_may_not_read_a_trace_gets_no_address(stranger: TestClient, signing: _Signing) -> None:
    answered = stranger.get(TRACE)
    assert answered.status_code == 401
    assert "location" not in answered.headers
    assert signing.signatures == []


@pytest.mark.parametrize(
    "path",
    [f"{TRACE}?through=service", *(f"/reports/team-a/slow/files/{name}" for name in ("report.json", "report.html"))],
)
def test_all_else_comes_through_the_service(client: TestClient, signing: _Signing, path: str) -> None:
    assert client.get(path).status_code == 200
    assert signing.signatures == []


@pytest.mark.attack
@pytest.mark.parametrize("name", ["ranks/2/..%2f..%2freport.json", "ranks/2/operations.bin", "ranks/-1/trace.json.gz"])
def test_nothing_else_is_signed(client: TestClient, signing: _Signing, name: str) -> None:
    assert client.get(f"/reports/team-a/slow/files/{name}").status_code in (404, 422)
    assert signing.signatures == []
