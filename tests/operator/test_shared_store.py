"""Two hubs of one cluster and one of another, over one store: real operators, a real API server for each cluster."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fleetprof_store.captures import read_captures
from fleetprof_store.clusters import ClustersStore
from fleetprof_store.location import open_location, parse_location
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.catalog.requests import RequestQuery
from harness.kubernetes.api_server import ApiServer, serve_requests
from harness.kubernetes.request_ground import RequestGround

pytestmark = pytest.mark.cluster


def share(ground: RequestGround, cluster: str, first: RequestGround, namespace: str) -> RequestGround:
    """The ground of a hub of this cluster over the first one's store."""
    ground.store = first.store
    ground.namespace = namespace
    ground.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}, also=(409,))
    account = {"metadata": {"name": "default"}}
    ground.must("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account, also=(409,))
    ground.arguments = ["--cluster", cluster, "--namespaces", namespace]
    return ground


@pytest.fixture
async def grounds(api: ApiServer, tmp_path: Path) -> AsyncIterator[list[RequestGround]]:
    """Two hubs of `east` with a namespace each, and one of `west` with a namespace of the first one's name."""
    with ExitStack() as running:
        (tmp_path / "west").mkdir()
        other = running.enter_context(serve_requests(tmp_path / "west"))
        folders = [tmp_path / name for name in ("one", "two", "three")]
        for folder in folders:
            folder.mkdir()
        first, second = RequestGround(api, folders[0]), RequestGround(api, folders[1])
        third = RequestGround(other, folders[2])
        share(first, "east", first, first.namespace)
        share(second, "east", first, second.namespace)
        share(third, "west", first, first.namespace)
        grounds = [first, second, third]
        try:
            yield grounds
        finally:
            for ground in grounds:
                await ground.close()


@pytest.mark.attack
async def test_each_hub_writes_below_its_own_cluster_alone(grounds: list[RequestGround], tmp_path: Path) -> None:
    first, second, _ = grounds
    store = open_location(parse_location(str(first.store)), secret=b"s" * 32)
    made: list[str] = []
    for ground in grounds:
        ground.start_operator()
        rank = await ground.add_rank(0, 1)
        made.append(ground.ask()["metadata"]["uid"])
        await ground.deliver(rank)
    for ground in grounds:
        assert (await ground.until_finished())["ranks"]["uploaded"] == 1

    roots = {tuple(info.key.split("/")[:4]) for info in store.list("") if info.key.endswith("ledger.json")}
    namespaces = (first.namespace, second.namespace, first.namespace)
    assert roots == {("clusters", c, "v1", n) for c, n in zip(("east", "east", "west"), namespaces, strict=True)}
    assert {info.key.partition("/")[0] for info in store.list("")} == {"clusters"}

    for own, foreign in (("east", {f"west.{first.namespace}"}), ("west", {f"east.{n}" for n in namespaces[:2]})):
        view = ClustersStore(store, own)
        namespaces_there = {info.key.split("/")[1] for info in view.list("v1/") if info.key.endswith("ledger.json")}
        assert {namespace for namespace in namespaces_there if "." in namespace} == foreign
    own_root = open_location(parse_location(str(first.store)).of_cluster("east"))
    assert {capture.ledger.uid for capture in read_captures(own_root)} == set(made[:2])

    # And the web UI of each shows them all, by cluster.
    for own in ("east", "west"):
        catalog = Catalog(ClustersStore(store, own), open_database(sqlite_url(tmp_path / f"{own}.sqlite")), cluster=own)
        catalog.refresh()
        page = catalog.requests(RequestQuery("west", "", "", "", "", "-submitted", "", 50), None)
        assert ([item.uid for item in page.items], page.total) == (made[2:], 1)
        assert {facet.value: facet.count for facet in page.facets.cluster} == {"east": 2, "west": 1}
        catalog.close()
