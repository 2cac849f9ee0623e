"""The catalog's database: its version, and what cannot be used."""

import hashlib
from pathlib import Path

import pytest
from fleetprof_webui.catalog.database import CatalogUnusable, open_database, sqlite_url
from fleetprof_webui.catalog.schema import VERSION, metadata
from sqlalchemy import text
from sqlalchemy.schema import CreateTable


def test_the_version_is_that_of_these_tables() -> None:
    """A change of a table raises the version, so that catalogs are filled anew."""
    tables = sorted(metadata.tables.values(), key=lambda table: table.name)
    made = "\n".join(str(CreateTable(table)) for table in tables)
    assert (VERSION, hashlib.blake2b(made.encode(), digest_size=4).hexdigest()) == (4, "295cd786")


def test_a_catalog_of_a_newer_version_is_refused_with_the_next_step(catalog_url: str) -> None:
    engine = open_database(catalog_url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE catalog SET version = {VERSION + 1}"))
    with pytest.raises(CatalogUnusable, match="fleetprof catalog rebuild"):
        open_database(catalog_url)
    open_database(catalog_url, anew=True).dispose()
    engine.dispose()


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(b"this is no database" * 500)
    open_database(sqlite_url(path)).dispose()
    assert path.with_name("catalog.sqlite.damaged").read_bytes().startswith(b"this is no database")


@pytest.mark.parametrize(
    "url", ["mysql://a@b/c", "nonsense", "sqlite:////no/such/folder/catalog", "postgresql://@/x?host=/no"]
)
def test_an_address_that_cannot_be_used_is_refused_in_words(url: str) -> None:
    with pytest.raises(CatalogUnusable, match="catalog"):
        open_database(url)
