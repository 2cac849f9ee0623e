"""The catalog's database: SQLite in a file, or PostgreSQL.

Guarantees: whoever has an engine from here has the tables of this version; those of an earlier one, and a damaged
SQLite file, which is put aside, are made anew, because nothing in them is the only copy.
"""

import logging
import sqlite3
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from fleetprof_api.errors import FleetprofError
from sqlalchemy import Connection, Engine, event, insert, inspect, make_url, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, SQLAlchemyError

from fleetprof_webui.catalog.schema import VERSION, catalog, metadata

_OF_EARLIER_VERSIONS: Final = ("findings", "ranks", "alembic_version")
_BUSY_MS: Final = 10_000
_DAMAGED: Final = ("file is not a database", "database disk image is malformed")

log = logging.getLogger(__name__)


class CatalogUnusable(FleetprofError):
    """The database cannot be used; the message says why and what to do."""


def sqlite_url(path: Path) -> str:
    """The address of a catalog in a file."""
    return sqlalchemy.URL.create("sqlite", database=str(path)).render_as_string()


def open_database(url: str, *, anew: bool = False) -> Engine:
    """An engine whose tables are there and of this version; `anew`: and empty. Raises CatalogUnusable."""
    try:
        engine = _make_engine(url)
    except (ArgumentError, ImportError) as error:
        raise CatalogUnusable(
            f"the catalog's address cannot be used: {error}; give sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    try:
        _make_tables(engine, anew=anew)
    except SQLAlchemyError as error:
        engine.dispose()
        if not _is_damaged(engine, error):
            cause = error.orig if isinstance(error, DatabaseError) else error
            raise CatalogUnusable(
                f"the catalog's database does not answer: {cause}; look at its address, and that it runs"
            ) from None
        _put_aside(Path(str(engine.url.database)))
        _make_tables(engine, anew=False)
    except CatalogUnusable:
        engine.dispose()
        raise
    return engine


def _is_damaged(engine: Engine, error: Exception) -> bool:
    return engine.dialect.name == "sqlite" and isinstance(error, DatabaseError) and str(error.orig) in _DAMAGED


def _make_engine(url: str) -> Engine:
    address = make_url(url)
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    if address.get_backend_name() not in ("sqlite", "postgresql"):
        raise ArgumentError(f"a catalog lies in SQLite or PostgreSQL, not in {address.get_backend_name()}")
    if address.get_backend_name() == "sqlite":
        engine = sqlalchemy.create_engine(address)
        event.listen(engine, "connect", _set_up_sqlite)
        return engine
    engine = sqlalchemy.create_engine(address, pool_pre_ping=True, pool_size=8, max_overflow=24)
    event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={_BUSY_MS}"):
        connection.execute(f"PRAGMA {pragma}").close()


def _set_up_postgresql(connection: DBAPIConnection, _record: Any) -> None:
    """Plans for many short reads of a catalog that memory holds: by index, and by one process each."""
    for setting in ("random_page_cost = 1.1", "max_parallel_workers_per_gather = 0", "jit = off"):
        connection.cursor().execute(f"SET {setting}")
    connection.commit()


def _make_tables(engine: Engine, *, anew: bool) -> None:
    """Makes the tables where they are not there, of an earlier version, or shall be empty. Raises CatalogUnusable."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # another replica may do the same now
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('fleetprof catalog'))"))
        found = _find_version(connection)
        if found > VERSION and not anew:
            raise CatalogUnusable(
                f"the catalog is of another version of fleetprof ({found}, this one knows {VERSION}); rebuild it: "
                "fleetprof catalog rebuild"
            )
        if found == VERSION and not anew:
            return
        for table in _OF_EARLIER_VERSIONS:
            connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
        metadata.drop_all(connection)
        metadata.create_all(connection)
        connection.execute(insert(catalog).values(version=VERSION))


def _find_version(connection: Connection) -> int:
    if not inspect(connection).has_table(catalog.name):
        return 0
    return connection.execute(select(catalog.c.version)).scalar_one_or_none() or 0


def _put_aside(path: Path) -> None:
    log.warning("the catalog %s is damaged; it is made anew from the store, and the old one is %s.damaged", path, path)
    path.replace(path.with_name(f"{path.name}.damaged"))
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
