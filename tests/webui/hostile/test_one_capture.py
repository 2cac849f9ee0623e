"""Whatever one capture's report does to the catalog, the others are there, and a row says what is wrong with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_store.base import StoreError
from fleetprof_webui.catalog import ingestion
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.catalog.requests import RequestQuery
from harness.memory_store import MemoryStore
from sqlalchemy import Engine
from sqlalchemy import exc as sql

BAD = ("team-a", "slow")  # the first in the store
OTHERS = {"healthy", "late", "running", "failed"}


class Killed(BaseException):
    """Stands for the end of the process."""


def found(catalog: Catalog) -> dict[str, bool]:
    """Tells whether each request has its report."""
    query = RequestQuery(cluster="", namespace="", state="", host="", text="", sort="submitted", after="", limit=50)
    return {item.uid: item.has_report for item in catalog.requests(query, None).items}


def problem_of(catalog: Catalog) -> str:
    entry = catalog.request(*BAD)
    assert entry is not None
    return entry.problem


def set_in_report(store: MemoryStore, literal: str, *path: str | int) -> None:
    report = json.loads(store.get(keys.report_key(*BAD)))
    at: Any = report
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = "@@@"
    store.put(keys.report_key(*BAD), json.dumps(report).replace('"@@@"', literal).encode())


@pytest.mark.attack
@pytest.mark.parametrize("literal", ["1e308", "9e98", "-9e98", "1e-99", "9" * 400, "9" * 18, "-" + "9" * 18])
@pytest.mark.parametrize(
    "path",
    [
        ("stragglers", "gain"),
        ("stragglers", "ranks", 0, "gain"),
        ("findings", 0, "gain_permille"),
        ("totals", 0, "time_ns", "span"),
        ("totals", 0, "time_ns", "idle"),
        ("ranks", 0, "rank"),
        ("ranks", 0, "iterations", 0, "duration_ns"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_no_number_of_a_report_freezes_the_catalog(
    store: MemoryStore, catalog_url: str, path: tuple[str | int, ...], literal: str
) -> None:
    set_in_report(store, literal, *path)
    catalog = Catalog(store, open_database(catalog_url))
    assert catalog.refresh() is not None, catalog.problem
    has_report = found(catalog)
    assert has_report.keys() == OTHERS | {"slow"}
    assert has_report["healthy"]
    assert has_report["late"]
    assert has_report["slow"] or problem_of(catalog)
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


@pytest.mark.attack
def test_a_capture_that_ends_the_process_is_read_twice_at_most(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "_LARGE_BYTES", 0)
    _fail_for_one(monkeypatch, Killed())
    url = sqlite_url(tmp_path / "catalog.sqlite")
    for _ in range(2):
        with pytest.raises(Killed):
            Catalog(store, open_database(url)).refresh()
    catalog = Catalog(store, open_database(url))
    assert catalog.refresh() is not None
    assert found(catalog).keys() == OTHERS | {"slow"}
    assert "not read to its end" in problem_of(catalog)
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
