"""Whatever one capture's report does to the catalog, the others are there, and a row says what is wrong with it."""

import resource
from pathlib import Path
from typing import Any

import pytest
from fleetprof_store.base import StoreError
from fleetprof_webui.catalog import ingestion
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.catalog.requests import RequestQuery
from harness.memory_store import MemoryStore
from sqlalchemy import Engine
from sqlalchemy import exc as sql
from webui.conftest import put_in_head, put_older_report

BAD = ("team-a", "slow")  # the first in the store
OTHERS = {"healthy", "late", "running", "failed"}
LITERALS = ["1e308", "9e98", "-9e98", "1e-99", "9" * 400, "9" * 18, "-" + "9" * 18, str(2**63 - 1), str(2**63), "-0.0"]
LITERALS += ["NaN", "-Infinity", '"NaN"', '"1e308"', "[]", "null", "true"]


def found(catalog: Catalog) -> dict[str, bool]:
    """Tells whether each request has its report."""
    query = RequestQuery(cluster="", namespace="", state="", host="", text="", sort="submitted", after="", limit=50)
    return {item.uid: item.has_report for item in catalog.requests(query, None).items}


def problem_of(catalog: Catalog) -> str:
    entry = catalog.request(*BAD)
    assert entry is not None
    return entry.problem


@pytest.mark.attack
@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("name", ["gain_permille", "rank_count", "span_ns", "iteration_ns", "power_mw"])
def test_no_number_of_a_head_freezes_the_catalog(store: MemoryStore, catalog_url: str, name: str, literal: str) -> None:
    put_in_head(store, *BAD, name, literal)
    catalog = Catalog(store, open_database(catalog_url))
    assert catalog.refresh() is not None, catalog.problem
    has_report = found(catalog)
    assert has_report.keys() == OTHERS | {"slow"}
    assert has_report["healthy"]
    assert has_report["late"]
    assert has_report["slow"] or problem_of(catalog)
    catalog.close()


@pytest.mark.attack
def test_a_report_that_takes_all_memory_ends_its_worker_alone(store: MemoryStore, tmp_path: Path) -> None:
    """Half a million small objects, each a hundred bytes as text and a kilobyte as objects."""
    problems = b",".join([b'{"kind":"k","message":"m"}'] * 1_000_000)
    ranks = b",".join([b'{"rank":0,"source":"s","kind":"gpu","time_basis":"device","time_ns":{}}'] * 40_000)
    put_older_report(store, *BAD, b'{"schema_version":1,"problems":[%b],"ranks":[%b]}' % (problems, ranks))
    catalog = Catalog(store, open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert catalog.refresh() is not None
    assert found(catalog).keys() == OTHERS | {"slow"}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < 128 << 20
    catalog.close()


@pytest.mark.attack
@pytest.mark.parametrize(
    "fault",
    [OverflowError("too large"), MemoryError(), RecursionError(), KeyError("x"), sql.DataError("", {}, Exception())],
)
def test_whatever_one_capture_raises_is_its_own_problem(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    _fail_for_one(monkeypatch, fault)
    catalog = Catalog(store, open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    changes = catalog.refresh()
    assert changes is not None
    assert found(catalog).keys() == OTHERS | {"slow"}
    assert type(fault).__name__ in problem_of(catalog)
    assert catalog.refresh() == ingestion.Changes(0, 0), "it is not read again before it changes"
    catalog.close()


def test_one_object_that_the_store_does_not_give_keeps_no_other_out(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_for_one(monkeypatch, StoreError("it lies in an archive", retryable=False))
    catalog = Catalog(store, open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    assert catalog.refresh() is not None
    assert found(catalog).keys() == OTHERS
    catalog.close()


def _fail_for_one(monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> None:
    whole = ingestion._ingest_one

    def ingest(store: MemoryStore, engine: Engine, namespace: str, uid: str, stored: Any) -> bool:
        if (namespace, uid) == BAD:
            raise fault
        return whole(store, engine, namespace, uid, stored)

    monkeypatch.setattr(ingestion, "_ingest_one", ingest)
