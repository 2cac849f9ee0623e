"""A service in a cluster: a real API server, a real identity provider, and people who come with a browser."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Condition, Ledger
from fleetprof_store.base import Store
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.cluster.settings import read_settings
from fleetprof_webui.cluster.site import ClusterSite, make_site
from fleetprof_webui.kubernetes_api import KubernetesApi
from harness.identity.provider import CLIENT, SECRET, Issuer, run_provider
from harness.kubernetes.api_server import ApiServer, serve_requests
from harness.memory_store import MemoryStore
from starlette.testclient import TestClient

PUBLIC = "https://fleetprof.example.com"
WRITE = {"Origin": PUBLIC, "X-Fleetprof-Request": "1"}
SYSTEM = "fleetprof-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REQUESTS = {"apiGroups": ["fleetprof.io"], "resources": ["profilerequests"]}


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with run_provider(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.fixture(scope="session")
def cluster(provider: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that knows ProfileRequests and trusts the provider; the service's account may ask for reviews."""
    flags = (
        f"--oidc-issuer-url={provider.issuer}",
        f"--oidc-client-id={CLIENT}",
        f"--oidc-ca-file={provider.ca_file}",
        "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=oidc:",
    )
    with serve_requests(tmp_path_factory.mktemp("api-server"), *flags) as server:
        for name in (SYSTEM, "team-a", "team-b"):
            make(server, "/api/v1/namespaces", {"metadata": {"name": name}})
        make(server, f"/api/v1/namespaces/{SYSTEM}/serviceaccounts", {"metadata": {"name": "webui"}})
        review = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}
        account = {"kind": "ServiceAccount", "name": "webui", "namespace": SYSTEM}
        grant(server, "webui", [review], account)
        everything = {**REQUESTS, "verbs": ["get", "list", "create", "patch"]}
        group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io"}
        grant(server, "team-a", [everything], {**group, "name": "oidc:team-a"}, namespace="team-a")
        grant(server, "chiefs", [{**REQUESTS, "verbs": ["get", "list"]}], {**group, "name": "oidc:chiefs"})
        yield server


def make(server: ApiServer, path: str, document: dict[str, Any]) -> dict[str, Any]:
    status, made = server.call("POST", path, document)
    assert status == 201, made
    return made


def grant(
    server: ApiServer, name: str, rules: list[dict[str, Any]], subject: dict[str, Any], *, namespace: str = ""
) -> None:
    """A role of this name, bound to the subject; cluster-wide without a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    path = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    make(server, f"{path}/{kind.lower()}s", {"metadata": {"name": name}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    make(server, f"{path}/{kind.lower()}bindings", binding)


@pytest.fixture
def flags(provider: Issuer, cluster: ApiServer, tmp_path: Path) -> list[str]:
    """The settings of a service that people sign in to at the provider."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/webui/token"
    token = make(cluster, path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    (tmp_path / "token").write_text(token)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    return [
        f"--store={tmp_path}",
        f"--catalog={sqlite_url(tmp_path / 'catalog.sqlite')}",
        f"--public-url={PUBLIC}",
        f"--oidc-issuer-url={provider.issuer}",
        f"--oidc-client-id={CLIENT}",
        f"--oidc-client-secret-file={tmp_path / 'secret'}",
        f"--identity-ca-file={provider.ca_file}",
        "--groups-claim=groups",
        "--groups-prefix=oidc:",
    ]


@dataclass(frozen=True)
class Browser:
    """A browser with its cookies, and the service that it looks at."""

    client: TestClient
    provider: Issuer
    site: ClusterSite

    def sign_in(self, then: str = "/requests") -> Any:
        """To the provider and back; the answer to the way back."""
        return self.come_back(self.leave(then))

    def leave(self, then: str = "/requests") -> str:
        """Goes to the provider; the address to which it sends people back."""
        left = self.client.get("/session/start", params={"then": then}, follow_redirects=False)
        assert left.status_code == 302, left.text
        context = ssl.create_default_context(cafile=str(self.provider.ca_file))
        sent = httpx2.get(left.headers["location"], verify=context, trust_env=False)
        assert sent.status_code == 307, sent.text
        return sent.headers["location"]

    def come_back(self, address: str) -> Any:
        """Opens the address to which the provider sends people back."""
        return self.client.get(address, follow_redirects=False)


@pytest.fixture
def connect(cluster: ApiServer, tmp_path: Path) -> Callable[[], KubernetesApi]:
    """Opens the service's own way to the API server; `flags` makes its token."""
    address = f"https://127.0.0.1:{cluster.port}"
    return lambda: KubernetesApi(address, ca_file=cluster.authority, token_file=tmp_path / "token")


@pytest.fixture
def make_browser(
    flags: list[str], connect: Callable[[], KubernetesApi], provider: Issuer, tmp_path: Path
) -> Iterator[Callable[..., Browser]]:
    """A service with more flags, and a browser in front of it; `of` another browser: at the same service."""
    store = MemoryStore()
    for namespace in ("team-a", "team-b"):
        put_capture(store, namespace, f"uid-{namespace}")
    catalog = Catalog(store, open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    catalog.refresh()

    def make_one(*more: str, of: Browser | None = None) -> Browser:
        settings, api = read_settings([*flags, *more], {}), connect()
        site = of.site if of else make_site(settings, store, catalog, api)
        client = TestClient(
            site.pages, base_url=PUBLIC, headers={"Accept": "application/json"}, raise_server_exceptions=False
        )
        opened.enter_context(client)
        assert client.portal is not None
        opened.callback(client.portal.call, api.close)
        return Browser(client, provider, site)

    provider.sign_in_as("ann", "team-a")
    with ExitStack() as opened:
        yield make_one
    catalog.close()


@pytest.fixture
def browser(make_browser: Callable[..., Browser]) -> Browser:
    """A browser in which nobody has signed in."""
    return make_browser()


def put_capture(store: Store, namespace: str, uid: str) -> None:
    """A capture that ended without a report."""
    second = 1_000_000_000
    ledger = Ledger(
        uid=uid,
        name=f"{uid}-name",
        namespace=namespace,
        submitted_unix_ns=1_790_000_000 * second,
        completed_unix_ns=1_790_000_010 * second,
        outcome="NothingCaptured",
        conditions=[Condition(type="Succeeded", status="False", reason="NothingCaptured")],
        entries=[],
    )
    document = {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"name": f"{uid}-name"},
        "spec": {"target": {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}},
    }
    store.put(keys.request_key(namespace, uid), msgspec.json.encode(document))
    store.put(keys.ledger_key(namespace, uid), msgspec.json.encode(ledger))
