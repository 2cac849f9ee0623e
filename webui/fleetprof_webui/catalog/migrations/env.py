"""Alembic's way to the catalog: through the engine that it is given, never through a file of settings."""

from alembic import context
from fleetprof_webui.catalog.schema import metadata
from sqlalchemy import Engine


def _migrate() -> None:
    engine: Engine = context.config.attributes["engine"]
    with engine.begin() as connection:
        # SQLite cannot change a table in place: Alembic copies it.
        context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
        with context.begin_transaction():
            context.run_migrations()


_migrate()
