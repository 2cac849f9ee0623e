"""Captures of several clusters over one store: each is found and counted by its cluster, in both databases."""

from collections.abc import Iterator
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_store.clusters import ClustersStore
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database
from harness.memory_store import MemoryStore
from webui.conftest import make_ledger, put_ledger, request_document
from webui.test_catalog import fleet_names, fleet_query, request_query, request_uids

PLACES = [("east", "team-a"), ("east", "team-b"), ("west", "team-a"), ("we", "team-a")]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for cluster, namespace in PLACES:
        one = MemoryStore()
        one.put(keys.request_key(namespace, cluster), request_document(f"job-{cluster}-{namespace}"))
        put_ledger(one, make_ledger(namespace, cluster))
        for info in one.list(""):
            store.put(f"{keys.cluster_root(cluster)}{info.key}", one.get(info.key))
    return store


@pytest.fixture
def catalog(store: MemoryStore, catalog_url: str) -> Iterator[Catalog]:
    """As the web UI of `east` has it."""
    opened = Catalog(ClustersStore(store, "east"), open_database(catalog_url), cluster="east")
    assert opened.refresh() is not None
    yield opened
    opened.close()


def count(facet: Any) -> dict[str, int]:
    return {one.value: one.count for one in facet}


def test_a_cluster_is_found_and_counted(catalog: Catalog) -> None:
    assert fleet_names(catalog, cluster="east") == ["job-east-team-a", "job-east-team-b"]
    assert fleet_names(catalog, cluster="west") == ["job-west-team-a"]
    assert fleet_names(catalog, cluster="w_st") == []
    assert request_uids(catalog, cluster="we") == ["we"]
    everywhere = {"east": 2, "west": 1, "we": 1}
    page = catalog.fleet(fleet_query(cluster="west"), None)
    assert (count(page.facets.cluster), page.total) == (everywhere, 1)
    assert count(page.facets.namespace) == {"west.team-a": 1}
    assert count(catalog.requests(request_query(), None).facets.cluster) == everywhere
    assert count(catalog.fleet(fleet_query(namespace="team-b"), None).facets.cluster) == {"east": 1}


def test_of_a_cluster_that_a_person_may_not_read_nothing_is_counted(catalog: Catalog) -> None:
    page = catalog.fleet(fleet_query(cluster="west"), frozenset({"team-a"}))
    assert (page.items, count(page.facets.cluster)) == ([], {"east": 1})


def test_where_nothing_names_the_cluster_there_is_no_such_filter(read_catalog: Catalog) -> None:
    assert read_catalog.fleet(fleet_query(), None).facets.cluster == []
