"""The catalog, in SQLite and in PostgreSQL: what is found and how, and that it follows the store."""

import gzip
import hashlib
import json
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_store.base import ObjectInfo, StoreError
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database
from fleetprof_webui.catalog.fleet import FleetQuery
from fleetprof_webui.catalog.ingestion import Changes
from fleetprof_webui.catalog.requests import RequestQuery
from fleetprof_webui.catalog.schema import VERSION, metadata
from fleetprof_webui.problems import RequestRefused
from harness.memory_store import MemoryStore
from sqlalchemy import inspect, text
from webui.conftest import make_ledger, put_in_head, put_ledger, put_older_report, request_document


def fleet_query(**wanted: Any) -> FleetQuery:
    usual: dict[str, Any] = dict.fromkeys(
        ("cluster", "namespace", "kind", "gpu", "finding", "label", "text", "after"), ""
    )
    return FleetQuery(**(usual | {"sort": "name", "limit": 50} | wanted))


def request_query(**wanted: Any) -> RequestQuery:
    usual: dict[str, Any] = dict.fromkeys(("cluster", "namespace", "state", "host", "text", "after"), "")
    return RequestQuery(**(usual | {"sort": "submitted", "limit": 50} | wanted))


def fleet_names(catalog: Catalog, **wanted: Any) -> list[str]:
    return [item.name for item in catalog.fleet(fleet_query(**wanted), None).items]


def request_uids(catalog: Catalog, **wanted: Any) -> list[str]:
    return [item.uid for item in catalog.requests(request_query(**wanted), None).items]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["app=gpt,tier=train", "bert", "llama"]),
        ({"sort": "-name"}, ["llama", "bert", "app=gpt,tier=train"]),
        ({"sort": "-last"}, ["bert", "llama", "app=gpt,tier=train"]),
        ({"sort": "-busy"}, ["bert", "llama", "app=gpt,tier=train"]),
        ({"namespace": "team-a"}, ["llama"]),
        ({"namespace": "team"}, []),
        ({"kind": "Job"}, ["bert", "llama"]),
        ({"kind": "Selector"}, ["app=gpt,tier=train"]),
        ({"text": "LLA"}, ["llama"]),
        ({"text": "%"}, []),
        ({"text": "_"}, []),
        ({"text": "team-b"}, ["app=gpt,tier=train", "bert"]),
        ({"text": "'; DROP TABLE workloads; --"}, []),
        ({"gpu": "nobody has this"}, []),
        ({"label": "team=vision"}, ["llama"]),
        ({"label": "tier=train"}, ["app=gpt,tier=train"]),
        ({"label": "team"}, []),
    ],
)
def test_finds_workloads(read_catalog: Catalog, wanted: dict[str, str], names: list[str]) -> None:
    assert fleet_names(read_catalog, **wanted) == names


@pytest.mark.parametrize(
    ("wanted", "uids"),
    [
        ({}, ["slow", "failed", "healthy", "late", "running"]),
        ({"sort": "-submitted"}, ["running", "late", "healthy", "failed", "slow"]),
        ({"state": "Running"}, ["running"]),
        ({"state": "NothingCaptured"}, ["failed"]),
        ({"namespace": "team-a"}, ["slow", "healthy"]),
        ({"text": "gpt"}, ["failed"]),
        ({"text": "slow-NAME"}, ["slow"]),
        ({"host": "nowhere"}, []),
    ],
)
def test_finds_requests(read_catalog: Catalog, wanted: dict[str, str], uids: list[str]) -> None:
    assert request_uids(read_catalog, **wanted) == uids


def test_labels_are_counted_as_the_other_filters_are(read_catalog: Catalog) -> None:
    def count(**wanted: Any) -> dict[str, int]:
        return {one.value: one.count for one in read_catalog.fleet(fleet_query(**wanted), None).facets.label}

    assert count() == {"app=gpt": 1, "team=vision": 1, "tier=train": 1}
    assert count(kind="Job", label="tier=train") == {"team=vision": 1}, "a facet counts without its own condition"
    found = read_catalog.fleet(fleet_query(label="team=vision"), {"team-b"})
    assert (found.items, found.facets.kind) == ([], []), "what nobody may read is not counted"


def test_a_workload_has_the_labels_of_its_latest_capture(catalog: Catalog, store: MemoryStore) -> None:
    for at, team in ((900, "speech"), (800, "robots")):
        ledger = make_ledger("team-a", f"at-{at}", at=at)
        ledger.labels = {"team": team, "batch.kubernetes.io/controller-uid": "1", "pod-template-hash": "2"}
        put_ledger(store, ledger)
        store.put(keys.request_key("team-a", f"at-{at}"), request_document("llama"))
        catalog.refresh()
    values = [one.value for one in catalog.fleet(fleet_query(text="llama"), None).facets.label]
    assert values == ["team=speech"]


def test_what_a_service_before_labels_wrote_is_written_anew(
    catalog: Catalog, catalog_url: str, store: MemoryStore
) -> None:
    """It may run until a roll-out ends, after the tables have changed."""
    prefix = "v1/team-a/slow/"
    versions = {info.key.removeprefix(prefix): info.version or str(info.size_bytes) for info in store.list(prefix)}
    watched = [f"{name} {versions[name]}" for name in ("ledger.json", "report.json", "request.json")]
    before = hashlib.blake2b("\n".join(watched).encode(), digest_size=16).hexdigest()
    engine = open_database(catalog_url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM labels"))
        connection.execute(text("UPDATE requests SET version = :v WHERE uid = 'slow'"), {"v": before})
    engine.dispose()
    assert catalog.refresh() == Changes(1, 0)


def test_a_capture_is_found_by_a_host_that_its_ranks_ran_on(catalog: Catalog, store: MemoryStore) -> None:
    put_in_head(store, "team-a", "slow", "hosts", '["node-16", "node-17"]')
    catalog.refresh()
    assert request_uids(catalog, host="node-17") == ["slow"]


def test_a_workload_shows_its_last_report_and_its_history(read_catalog: Catalog) -> None:
    (llama,) = read_catalog.fleet(fleet_query(text="llama"), None).items
    assert (llama.captures, llama.last.uid, [point.uid for point in llama.history]) == (
        2,
        "healthy",
        ["slow", "healthy"],
    )
    (bert,) = read_catalog.fleet(fleet_query(text="bert"), None).items
    assert (bert.captures, bert.last.uid) == (2, "late"), "the one that runs has no report yet"
    page = read_catalog.workload("team-a", "Job", "llama", after="", limit=10)
    assert page is not None
    assert [item.uid for item in page.items] == ["healthy", "slow"]
    slow = page.items[1].figures
    assert slow is not None
    assert (slow.verdict, slow.stragglers, slow.rank_count) == ("straggler", [2], 4)
    assert slow.compute_ns + slow.exposed_communication_ns + slow.exposed_memory_ns + slow.idle_ns == slow.span_ns
    assert read_catalog.workload("team-a", "Job", "bert", after="", limit=10) is None


def test_facets_count_what_the_other_filters_let_through(read_catalog: Catalog) -> None:
    def facet(name: str, **wanted: Any) -> dict[str, int]:
        facets = read_catalog.fleet(fleet_query(**wanted), None).facets
        return {one.value: one.count for one in getattr(facets, name)}

    assert facet("namespace") == {"team-a": 1, "team-b": 2}
    assert facet("namespace", namespace="team-a") == {"team-a": 1, "team-b": 2}
    assert facet("kind", namespace="team-a") == {"Job": 1}


@pytest.mark.parametrize(
    ("namespaces", "names", "total"),
    [
        (None, ["app=gpt,tier=train", "bert", "llama"], 3),
        (frozenset({"team-a"}), ["llama"], 1),
        (frozenset({"team-a", "other"}), ["llama"], 1),
        (frozenset[str](), [], 0),
    ],
)
def test_what_a_person_may_not_read_is_neither_shown_nor_counted(
    read_catalog: Catalog, namespaces: frozenset[str] | None, names: list[str], total: int
) -> None:
    page = read_catalog.fleet(fleet_query(), namespaces)
    assert ([item.name for item in page.items], page.total) == (names, total)
    assert sum(one.count for one in page.facets.namespace) == total
    listed = read_catalog.requests(request_query(), namespaces)
    assert {item.namespace for item in listed.items} <= (namespaces or {"team-a", "team-b"})
    assert sum(one.count for one in listed.facets.state) == listed.total == len(listed.items)


@pytest.mark.parametrize("sort", ["submitted", "-submitted", "name", "-name", "state", "-state"])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_pages_join_to_the_whole_list(read_catalog: Catalog, sort: str, limit: int) -> None:
    whole = request_uids(read_catalog, sort=sort)
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = read_catalog.requests(request_query(sort=sort, limit=limit, after=after), None)
        found += [item.uid for item in page.items]
        after = page.next
    assert found == whole


def test_a_page_goes_on_where_the_one_before_ended_whatever_came_since(catalog: Catalog, store: MemoryStore) -> None:
    first = catalog.requests(request_query(sort="-submitted", limit=2), None)
    put_ledger(store, make_ledger("team-a", "newer", at=999))
    catalog.refresh()
    second = catalog.requests(request_query(sort="-submitted", limit=2, after=first.next), None)
    assert [item.uid for item in second.items] == ["healthy", "failed"]


@pytest.mark.parametrize("after", ["x", "AAAA", "WyJuYW1lIiwgMSwgMV0", "WyJzdWJtaXR0ZWQiLCAieCIsIDFd", "A" * 2000])
def test_a_made_up_cursor_is_refused(read_catalog: Catalog, after: str) -> None:
    with pytest.raises(RequestRefused, match="not of this list"):
        read_catalog.requests(request_query(after=after), None)


@pytest.mark.parametrize("sort", ["", "id", "uid", "submitted desc", "--name"])
def test_only_offered_orders_are_sorted_by(read_catalog: Catalog, sort: str) -> None:
    with pytest.raises(RequestRefused, match="not offered"):
        read_catalog.requests(request_query(sort=sort), None)


def test_a_second_look_changes_nothing(catalog: Catalog) -> None:
    assert catalog.refresh() == Changes(written=0, deleted=0)


def test_it_follows_what_the_store_deletes(catalog: Catalog, store: MemoryStore) -> None:
    for uid in ("slow", "healthy"):
        store.delete([info.key for info in store.list(keys.request_prefix("team-a", uid))])
    assert catalog.refresh() == Changes(written=0, deleted=2)
    assert fleet_names(catalog) == ["app=gpt,tier=train", "bert"]
    assert "slow" not in request_uids(catalog)


def test_it_follows_a_capture_to_its_end(catalog: Catalog, store: MemoryStore) -> None:
    put_ledger(store, make_ledger("team-b", "running", at=300))
    for name in ("slices/head.json.gz", "report.json"):
        store.put(f"v1/team-b/running/{name}", store.get(f"v1/team-b/late/{name}"))
    assert catalog.refresh() == Changes(written=1, deleted=0)
    (bert,) = catalog.fleet(fleet_query(text="bert"), None).items
    assert (bert.last.uid, bert.last.state) == ("running", "Complete")


def test_a_workload_keeps_no_figures_of_a_report_that_is_gone(catalog: Catalog, store: MemoryStore) -> None:
    store.delete([keys.report_key("team-b", "late")])
    catalog.refresh()
    (bert,) = catalog.fleet(fleet_query(text="bert"), None).items
    assert (bert.last.uid, bert.last.figures, bert.history) == ("running", None, [])
    assert fleet_names(catalog, sort="busy")[:2] == ["app=gpt,tier=train", "bert"], "unknown sorts as least"


DAMAGED = {
    "empty": b"",
    "half-written": b'{"schema_version": 1, "ranks": [{"rank": 0, "sou',
    "no report": b"[]",
    "binary": b"\x00\xff" * 100,
    "newer": b'{"schema_version": 99}',
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_report_is_a_row_that_says_so(catalog: Catalog, store: MemoryStore, kind: str) -> None:
    whole = store.get(keys.report_key("team-a", "healthy"))
    put_older_report(store, "team-a", "healthy", DAMAGED[kind])
    assert catalog.refresh() == Changes(written=1, deleted=0)
    page = catalog.workload("team-a", "Job", "llama", after="", limit=10)
    assert page is not None
    healthy = page.items[0]
    assert (healthy.has_report, healthy.figures) == (False, None)
    assert healthy.problem
    assert ("upgrade" in healthy.problem) == (kind == "newer")
    store.put(keys.report_key("team-a", "healthy"), whole)
    catalog.refresh()
    assert catalog.fleet(fleet_query(text="llama"), None).items[0].last.uid == "healthy"


DAMAGED_HEADS = {
    "no gzip": b"x",
    "no JSON": gzip.compress(b"{"),
    "no head": gzip.compress(b"{}"),
    "long": gzip.compress(b" " * 100_000),
    "out of bounds": gzip.compress(b'{"rank_count": 1e999}'),
}


@pytest.mark.parametrize("kind", DAMAGED_HEADS)
def test_a_damaged_head_is_a_row_that_says_so(catalog: Catalog, store: MemoryStore, kind: str) -> None:
    store.put(keys.slice_key("team-a", "healthy", "head"), DAMAGED_HEADS[kind])
    store.put(keys.report_key("team-a", "healthy"), b"another version")
    assert catalog.refresh() == Changes(written=1, deleted=0)
    page = catalog.workload("team-a", "Job", "llama", after="", limit=10)
    assert page is not None
    assert (page.items[0].has_report, "head" in page.items[0].problem) == (False, True)


def test_a_damaged_ledger_or_request_spoils_no_other(catalog: Catalog, store: MemoryStore) -> None:
    store.put(keys.ledger_key("team-a", "slow"), b"{")
    store.put(keys.request_key("team-a", "slow"), b'{"spec": 3}')
    store.put("v1/team-a/odd/unknown.bin", b"x")
    store.put("v2/team-a/newer/ledger.json", b"{}")
    assert catalog.refresh() == Changes(written=1, deleted=0)
    assert len(request_uids(catalog)) == 5


def test_names_that_are_made_to_hurt_are_stored_as_text(catalog: Catalog, store: MemoryStore) -> None:
    name = "<script>\x00\u202e\n" + "k" * 2_000
    for field in ("top_finding", "gpu", "torch_version", "verdict", "sentence"):
        put_in_head(store, "team-a", "slow", field, json.dumps(name))
    put_in_head(store, "team-a", "slow", "hosts", json.dumps([name, name]))
    put_in_head(store, "team-a", "slow", "stragglers", f"[{10**12}]")
    name = "<script>\x00\u202e\n" + "k" * 10_000
    store.put(keys.request_key("team-a", "slow"), request_document(name))
    assert catalog.refresh() == Changes(written=1, deleted=0)
    (found,) = catalog.fleet(fleet_query(text="<script>"), None).items
    assert found.name.isprintable()
    assert len(found.name) == 400


class _Failing(MemoryStore):
    def list(self, prefix: str) -> Any:
        yield ObjectInfo("v1/team-a/slow/ledger.json", 1, "1")
        raise StoreError("the bucket is away", retryable=True)


def test_nothing_goes_while_the_store_does_not_answer(catalog_url: str, store: MemoryStore) -> None:
    engine = open_database(catalog_url)
    Catalog(store, engine).refresh()
    catalog = Catalog(_Failing(), engine)
    assert catalog.refresh() is None
    assert "the bucket is away" in catalog.problem
    assert len(request_uids(catalog)) == 5
    engine.dispose()


def test_two_services_may_look_at_once(catalog_url: str, store: MemoryStore) -> None:
    first, second = (Catalog(store, open_database(catalog_url)) for _ in range(2))
    assert first.refresh() == Changes(written=5, deleted=0)
    assert second.refresh() == Changes(written=0, deleted=0)
    assert request_uids(first) == request_uids(second)
    for catalog in (first, second):
        catalog.close()


def test_a_lost_catalog_loses_nothing(catalog_url: str, store: MemoryStore) -> None:
    def everything(catalog: Catalog) -> bytes:
        return msgspec.json.encode([catalog.fleet(fleet_query(), None), catalog.requests(request_query(), None)])

    first = Catalog(store, open_database(catalog_url))
    first.refresh()
    before = everything(first)
    first.close()
    second = Catalog(store, open_database(catalog_url, anew=True))
    assert request_uids(second) == []
    second.refresh()
    assert everything(second) == before
    second.close()


def test_a_catalog_of_an_earlier_version_is_filled_anew(catalog_url: str, store: MemoryStore) -> None:
    """Also one that Alembic made, whose tables had other columns."""
    engine = open_database(catalog_url)
    for statements in (
        ["DROP TABLE catalog", "DROP TABLE hosts", "CREATE TABLE alembic_version (version_num VARCHAR(32))",
         "CREATE TABLE ranks (request_id INTEGER REFERENCES requests(id), host_name TEXT)"],
        [f"UPDATE catalog SET version = {VERSION - 1}"],
    ):  # fmt: skip
        earlier = Catalog(store, open_database(catalog_url))
        earlier.refresh()
        earlier.close()
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))
        catalog = Catalog(store, open_database(catalog_url))
        assert request_uids(catalog) == []
        catalog.refresh()
        assert len(request_uids(catalog)) == 5
        assert set(inspect(engine).get_table_names()) == set(metadata.tables)
        catalog.close()
    engine.dispose()
