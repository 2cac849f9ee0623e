"""`fleetprof catalog`: the web UI's index of a store. `rebuild` makes it anew."""

import os

import click
from fleetprof_store.base import StoreError

from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.process import catalog_url
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import read_store, state_option, store_options
from fleetprof_cli.store_location import open_store


@click.group("catalog")
def command() -> None:
    """Maintain the web UI's index of a store. It holds nothing that the store does not hold."""


@command.command("rebuild")
@store_options
@state_option
@click.pass_obj
def rebuild(state: StateDirectory, *, store: str | None, s3_endpoint: str, catalog: str | None) -> None:
    """Empty the catalog and read the whole store into it again."""
    from fleetprof_webui.catalog.database import CatalogUnusable, open_database
    from fleetprof_webui.catalog.ingestion import ingest, list_store

    location = read_store(state, store, s3_endpoint)
    os.umask(0o077)
    state.prepare()
    try:
        engine = open_database(catalog or catalog_url(state, location), anew=True)
        opened = open_store(location)
        changes = ingest(opened, engine, list_store(opened))
    except CatalogUnusable as error:
        raise Failure(str(error)) from None
    except StoreError as error:
        raise Failure(f"cannot read the store {location.address()}: {error}") from None
    engine.dispose()
    say(f"the catalog holds the {changes.written} captures of {location.address()}")
