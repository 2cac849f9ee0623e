"""The catalog's database: SQLite in a file, or PostgreSQL; made and upgraded by Alembic.

Guarantees: whoever has an engine from here has the newest tables; a damaged SQLite file is put aside and made anew,
because nothing in it is the only copy.
"""

import logging
import sqlite3
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from fleetprof_api.errors import FleetprofError
from sqlalchemy import Engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, SQLAlchemyError

from fleetprof_webui.catalog.schema import metadata

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
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
        _migrate(engine, anew=anew)
    except (SQLAlchemyError, CommandError) as error:
        engine.dispose()
        if not _is_damaged(engine, error):
            raise _explain(error) from None
        _put_aside(Path(str(engine.url.database)))
        _migrate(engine, anew=False)
    return engine


def _is_damaged(engine: Engine, error: Exception) -> bool:
    return engine.dialect.name == "sqlite" and isinstance(error, DatabaseError) and str(error.orig) in _DAMAGED


def _explain(error: Exception) -> CatalogUnusable:
    if isinstance(error, CommandError):
        return CatalogUnusable(
            f"the catalog is of another version of fleetprof ({error}); rebuild it: fleetprof catalog rebuild"
        )
    cause = error.orig if isinstance(error, DatabaseError) else error
    return CatalogUnusable(f"the catalog's database does not answer: {cause}; look at its address, and that it runs")


def migration_config(engine: Engine) -> Config:
    """The settings of Alembic's commands for this database."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config


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


def _migrate(engine: Engine, *, anew: bool) -> None:
    if anew:
        with engine.begin() as connection:
            metadata.drop_all(connection)
            connection.execute(sqlalchemy.text("DROP TABLE IF EXISTS alembic_version"))
    command.upgrade(migration_config(engine), "head")


def _put_aside(path: Path) -> None:
    log.warning("the catalog %s is damaged; it is made anew from the store, and the old one is %s.damaged", path, path)
    path.replace(path.with_name(f"{path.name}.damaged"))
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
