"""A small store of captures that the analyzer made of the project's own traces, and a service over it."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.stalls.verdict import judge_stall
from fleetprof_api import keys
from fleetprof_api.ledger import Condition, Ledger, LedgerEntry, RankState, Reason
from fleetprof_api.stacks import ProcessStacks
from fleetprof_api.stalls import JobStacks, StacksSample, write_job_stacks
from fleetprof_webui.access.local import LocalAccess
from fleetprof_webui.app import create_application
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.models.opened import OpenedPage
from fleetprof_webui.reports.whole_reports import WholeReports
from fleetprof_webui.service import CaptureRequests, Service
from harness.memory_store import MemoryStore
from harness.postgres.server import PostgresServer, run_postgres
from starlette.testclient import TestClient

TRACES = Path(__file__).parents[1] / "data" / "traces"
HOST = "127.0.0.1:8770"
ORIGIN = f"http://{HOST}"
WRITE = {"Origin": ORIGIN, "X-Fleetprof-Request": "1"}
SECOND = 1_000_000_000
BEGAN = 1_790_000_000 * SECOND


POLICY: dict[str, Any] = {
    "name": "llama",
    "spec": {"triggers": [{"name": "low", "type": "LowUtilization"}]},
    "status": {
        "suppressions": [
            {
                "workload": "Job/idle",
                "trigger": "low",
                "reason": "Cooldown",
                "message": "Already captured",
                "count": 2,
                "firstTime": "2026-09-21T07:10:00Z",
                "lastTime": "2026-09-21T07:58:00Z",
            }
        ]
    },
}


def request_document(name: str, **target: Any) -> bytes:
    """request.json of a capture of a Job, unless `target` says otherwise."""
    chosen = target or {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": name}}
    document = {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"name": name},
        "spec": {"target": chosen, "window": {"iterations": 5}},
    }
    return json.dumps(document).encode()


def make_ledger(namespace: str, uid: str, *, at: int = 0, ranks: int = 4, finished: bool = True) -> Ledger:
    """A ledger of a capture that was submitted `at` seconds after the first, all of whose ranks are stored."""
    submitted = BEGAN + at * SECOND
    state = RankState.UPLOADED if finished else RankState.ASKED
    entries = [
        LedgerEntry(
            rank=rank,
            process_id=f"p{rank}",
            state=state,
            asked_unix_ns=submitted + SECOND,
            uploaded_unix_ns=submitted + 4 * SECOND if finished else 0,
        )
        for rank in range(ranks)
    ]
    return Ledger(
        uid=uid,
        name=f"{uid}-name",
        namespace=namespace,
        submitted_unix_ns=submitted,
        completed_unix_ns=submitted + 10 * SECOND if finished else 0,
        outcome="Complete" if finished else "",
        conditions=[Condition(type="Succeeded", status="True", reason="Complete")] if finished else [],
        entries=entries,
    )


def put_ledger(store: MemoryStore, ledger: Ledger) -> None:
    """Writes ledger.json."""
    store.put(keys.ledger_key(ledger.namespace, ledger.uid), msgspec.json.encode(ledger))


def put_stacks(store: MemoryStore, namespace: str, uid: str, ranks: Sequence[ProcessStacks], *, at: int) -> None:
    """A request that has read these stacks."""
    document = json.loads(request_document("hung"))
    del document["spec"]["window"]
    document["spec"]["capture"] = {"stacks": {"samples": 1}}
    store.put(keys.request_key(namespace, uid), json.dumps(document).encode())
    verdict = judge_stall(ranks)
    ledger = make_ledger(namespace, uid, at=at, ranks=0)
    ledger.conditions[0].message = verdict.sentence
    put_ledger(store, ledger)
    sample = StacksSample(at_unix_ns=BEGAN + at * SECOND, verdict=verdict, processes=list(ranks))
    store.put(keys.stacks_key(namespace, uid), write_job_stacks(JobStacks(samples=[sample])))


def put_capture(store: MemoryStore, namespace: str, uid: str, traces: str, *, at: int, name: str) -> None:
    """A whole capture: request, ledger, traces, report."""
    for file in sorted((TRACES / traces).glob("rank*.json.gz")):
        store.put(keys.trace_key(namespace, uid, int(file.name[4:-8])), file.read_bytes())
    store.put(keys.request_key(namespace, uid), request_document(name))
    ledger = make_ledger(namespace, uid, at=at)
    ledger.labels = {"team": "vision"} if name == "llama" else {}
    put_ledger(store, ledger)
    analyze_capture(store, namespace, uid)


def put_older_report(store: MemoryStore, namespace: str, uid: str, data: bytes) -> None:
    """report.json as it was written before there were slices."""
    store.delete([info.key for info in store.list(f"{keys.request_prefix(namespace, uid)}slices/")])
    store.put(keys.report_key(namespace, uid), data)


def put_in_head(store: MemoryStore, namespace: str, uid: str, name: str, literal: str) -> None:
    """The head of a report with this JSON in a field."""
    key = keys.slice_key(namespace, uid, "head")
    head = json.loads(gzip.decompress(store.get(key)))
    (head if name in head else head["figures"])[name] = "@@@"
    store.put(key, gzip.compress(json.dumps(head).replace('"@@@"', literal).encode()))
    # What is looked at again is a report of another version.
    store.put(keys.report_key(namespace, uid), store.get(keys.report_key(namespace, uid)) + b"\n")


@pytest.fixture(scope="session")
def analysed() -> MemoryStore:
    """Three captures of two jobs in two namespaces, one that failed, and one that runs."""
    store = MemoryStore()
    put_capture(store, "team-a", "slow", "gpu_slow_rank", at=0, name="llama")
    put_capture(store, "team-a", "healthy", "gpu_healthy", at=100, name="llama")
    put_capture(store, "team-b", "late", "late_rank", at=200, name="bert")
    store.put(keys.request_key("team-b", "running"), request_document("bert"))
    put_ledger(store, make_ledger("team-b", "running", at=300, finished=False))
    failed = make_ledger("team-b", "failed", at=50, ranks=1)
    failed.outcome = "NothingCaptured"
    failed.entries[0].state = RankState.FAILED
    failed.entries[0].reason = Reason.NOT_POLLING
    failed.entries[0].message = "nothing asks for orders in this process"
    store.put(
        keys.request_key("team-b", "failed"),
        request_document("nameless", selector={"matchLabels": {"app": "gpt", "tier": "train"}}),
    )
    put_ledger(store, failed)
    store.put(keys.policies_key("team-a"), json.dumps({"policies": [POLICY]}).encode())
    return store


@pytest.fixture
def store(analysed: MemoryStore) -> MemoryStore:
    """A copy that the test may change."""
    return copy_store(analysed)


def copy_store(store: MemoryStore) -> MemoryStore:
    """The same objects, of the same versions in each copy."""
    copy = MemoryStore()
    for info in store.list("v1/"):
        copy.put(info.key, store.get(info.key))
    return copy


@pytest.fixture(scope="session")
def catalog_file(analysed: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog that has looked at a copy of the store: a service that begins with it has little left to do."""
    path = tmp_path_factory.mktemp("catalog") / "looked.sqlite"
    catalog = Catalog(copy_store(analysed), open_database(sqlite_url(path)))
    assert catalog.refresh() is not None
    catalog.close()
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that tests share, each with a database of its own."""
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def read_catalog(
    request: pytest.FixtureRequest, analysed: MemoryStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Catalog]:
    """A catalog of the whole store that tests share and only read."""
    if request.param == "sqlite":
        url = sqlite_url(tmp_path_factory.mktemp("catalog") / "catalog.sqlite")
    else:
        url = request.getfixturevalue("postgres").make_database()
    opened = Catalog(analysed, open_database(url))
    assert opened.refresh() is not None
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty catalog, in each of the two databases."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "catalog.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.make_database()


@pytest.fixture
def catalog(catalog_url: str, store: MemoryStore) -> Iterator[Catalog]:
    """A catalog that has looked at the store once."""
    opened = Catalog(store, open_database(catalog_url))
    assert opened.refresh() is not None
    yield opened
    opened.close()


@dataclass(frozen=True)
class Site:
    """A service and a client that is not signed in."""

    client: TestClient
    access: LocalAccess
    catalog: Catalog
    announced_tokens: list[str]

    def sign_in(self) -> None:
        """As the frontend does."""
        answer = self.client.post("/session", json={"token": self.access.make_token()}, headers=WRITE)
        assert answer.status_code == 204, answer.text


@pytest.fixture
def make_site(store: MemoryStore, catalog_file: Path, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes a service over the store; `captures` is the door to a hub."""
    made: list[Site] = []

    def make(captures: CaptureRequests | None = None, static: Path | None = None) -> Site:
        file = shutil.copyfile(catalog_file, tmp_path / f"service-{len(made)}.sqlite")
        catalog = Catalog(store, open_database(sqlite_url(file)))
        catalog.refresh()
        announced: list[str] = []
        access = LocalAccess(may_capture=captures is not None, announce_token=announced.append)
        service = Service(
            store=store,
            catalog=catalog,
            access=access,
            reports=WholeReports(store),
            captures=captures,
            opened=lambda: OpenedPage(items=[], finished=True, seconds=0.5),
        )
        app = create_application(service, hosts=[HOST], static=static or tmp_path / "static")
        client = TestClient(app, base_url=ORIGIN, headers={"Accept": "application/json"}, raise_server_exceptions=False)
        made.append(Site(client, access, catalog, announced))
        return made[-1]

    yield make
    for site in made:
        site.client.close()
        site.catalog.close()


@pytest.fixture
def stranger(make_site: Callable[..., Site]) -> Site:
    """A service that nobody has signed in to."""
    return make_site()


@pytest.fixture
def client(make_site: Callable[..., Site]) -> TestClient:
    """A signed-in client of a service that takes no captures."""
    site = make_site()
    site.sign_in()
    return site.client
