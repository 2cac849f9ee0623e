"""The web UI of one cluster over a bucket of several: rights show its own namespaces, and others by a grant."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fleetprof_store.clusters import ClustersStore
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.cluster.settings import read_settings
from fleetprof_webui.cluster.site import make_site
from fleetprof_webui.kubernetes_api import KubernetesApi
from harness.identity.provider import Issuer
from harness.kubernetes.api_server import ApiServer
from starlette.testclient import TestClient

from .conftest import PUBLIC, REQUESTS, WRITE, Browser, grant, put_capture
from .test_writes import yaml_of

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

GROUP = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io"}
EVERYTHING = {"east's", "old", "west's", "west's other", "north's"}
# groups of the provider → the captures that they see
SEEN = {
    "team-a": {"east's", "old"},
    "everywhere": {"east's", "old"},
    "west": {"west's", "west's other"},
    "west-team-a": {"west's"},
    "both": {"east's", "old", "west's", "west's other"},
    "administrators": EVERYTHING,
    "nobody": set[str](),
}
PLACES = {
    "east's": ("team-a", "uid-east"),
    "old": ("team-a", "uid-old"),
    "west's": ("west.team-a", "uid-west"),
    "west's other": ("west.team-b", "uid-west-b"),
    "north's": ("north.team-a", "uid-north"),
}


@pytest.fixture(scope="module")
def rights(cluster: ApiServer) -> None:
    reading = ["get", "list"]

    def of_clusters(*names: str) -> dict[str, Any]:
        return {"apiGroups": ["fleetprof.io"], "resources": ["clusters"], "verbs": reading, "resourceNames": names}

    everywhere = {**REQUESTS, "verbs": ["*"]}
    grant(cluster, "everywhere", [everywhere], {**GROUP, "name": "oidc:everywhere"})
    grant(cluster, "west", [of_clusters("west")], {**GROUP, "name": "oidc:west"})
    grant(cluster, "west-team-a", [of_clusters("west.team-a")], {**GROUP, "name": "oidc:west-team-a"})
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    grant(cluster, "administrators", [everything], {**GROUP, "name": "oidc:administrators"})
    # A Role of a namespace grants nothing of another cluster, whatever it says.
    grant(cluster, "of-a-namespace", [of_clusters("west")], {**GROUP, "name": "oidc:team-a"}, namespace="team-a")


@pytest.fixture
def visit(
    flags: list[str],
    connect: Callable[[], KubernetesApi],
    provider: Issuer,
    rights: None,
    s3_server: Any,
    tmp_path: Path,
) -> Iterator[Callable[[str], Browser]]:
    """Somebody of a group, signed in at the web UI of `east`, over a bucket of three clusters."""
    bucket = s3_server.make_bucket()
    for cluster, namespace, uid in (
        ("clusters/east", "team-a", "uid-east"),
        ("", "team-a", "uid-old"),
        ("clusters/west", "team-a", "uid-west"),
        ("clusters/west", "team-b", "uid-west-b"),
        ("clusters/north", "team-a", "uid-north"),
    ):
        put_capture(s3_server.make_store(bucket, f"shared/{cluster}".strip("/")), namespace, uid)
    store = ClustersStore(s3_server.make_store(bucket, "shared"), "east")
    catalog = Catalog(store, open_database(sqlite_url(tmp_path / "catalog.sqlite")), cluster="east")
    catalog.refresh()

    def come(group: str) -> Browser:
        settings = read_settings([*flags, "--cluster=east", "--writes=token"], {})
        api = connect()
        site = make_site(settings, store, catalog, api)
        client = TestClient(
            site.pages, base_url=PUBLIC, headers={"Accept": "application/json"}, raise_server_exceptions=False
        )
        opened.enter_context(client)
        assert client.portal is not None
        opened.callback(client.portal.call, api.close)
        groups = ("team-a", "west") if group == "both" else (group,)
        provider.sign_in_as("ann", *groups)
        browser = Browser(client, provider, site)
        assert browser.sign_in().status_code == 303
        return browser

    with ExitStack() as opened:
        yield come
    catalog.close()


@pytest.mark.attack
@pytest.mark.parametrize("group", SEEN)
def test_rights_of_a_namespace_here_show_none_of_that_name_elsewhere(
    visit: Callable[[str], Browser], group: str
) -> None:
    browser = visit(group)
    captures = {
        name
        for name, (namespace, uid) in PLACES.items()
        if browser.client.get(f"/requests/{namespace}/{uid}").status_code == 200
    }
    assert captures == SEEN[group]
    listed = {(item["namespace"], item["uid"]) for item in browser.client.get("/requests").json()["items"]}
    assert listed == {PLACES[name] for name in SEEN[group]}
    namespaces = {facet["value"] for facet in browser.client.get("/fleet").json()["facets"]["namespace"]}
    assert namespaces == {PLACES[name][0] for name in SEEN[group]}


def test_a_cluster_is_filtered_by_its_namespaces(visit: Callable[[str], Browser]) -> None:
    browser = visit("both")
    items = browser.client.get("/fleet", params={"namespace": "west.team-a"}).json()["items"]
    assert [item["namespace"] for item in items] == ["west.team-a"]
    found = browser.client.get("/fleet", params={"text": "west."}).json()["items"]
    assert {item["namespace"] for item in found} == {"west.team-a", "west.team-b"}


@pytest.mark.parametrize("page", ["/fleet", "/requests"])
def test_a_list_is_filtered_by_cluster_and_counts_those_that_a_person_may_see(
    visit: Callable[[str], Browser], page: str
) -> None:
    for group, clusters in (("both", {"east", "west"}), ("west-team-a", {"west"})):
        browser = visit(group)
        facets = browser.client.get(page).json()["facets"]
        assert {facet["value"] for facet in facets["cluster"]} == clusters
        for cluster, names in (
            ("west", {"west's", "west's other"}),
            ("east", {"east's", "old"}),
            ("north", set[str]()),
        ):
            items = browser.client.get(page, params={"cluster": cluster}).json()["items"]
            assert {item["namespace"] for item in items} == {PLACES[name][0] for name in names & SEEN[group]}


@pytest.mark.attack
def test_nothing_is_asked_for_in_another_cluster(visit: Callable[[str], Browser]) -> None:
    browser = visit("administrators")
    for namespace in ("west.team-a", "north.team-a"):
        answer = browser.client.post("/requests", json=yaml_of("r", namespace), headers=WRITE)
        assert answer.status_code in (409, 422), answer.text
        cancelled = browser.client.post(f"/requests/{namespace}/uid-west/cancel", headers=WRITE)
        assert cancelled.status_code >= 400
