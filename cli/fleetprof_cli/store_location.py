"""The object store that the user means: `--store` and `--s3-endpoint`, and the sentence when it cannot be used."""

from typing import TYPE_CHECKING

import msgspec
from fleetprof_store.location import StoreLocation, open_location, parse_location

from fleetprof_cli.messages import Failure

if TYPE_CHECKING:
    from fleetprof_store.base import Store

__all__ = ["StoreLocation", "open_store", "parse_store"]


def parse_store(text: str, s3_endpoint: str) -> StoreLocation:
    """The store that `--store` and `--s3-endpoint` mean. Raises ValueError with the rule."""
    location = parse_location(text)
    if not s3_endpoint:
        return location
    if not location.bucket:
        raise ValueError("--s3-endpoint needs --store s3://bucket/prefix")
    if location.endpoint:
        raise ValueError("--s3-endpoint: --store names an endpoint already; leave one out")
    return msgspec.structs.replace(location, endpoint=s3_endpoint)


def open_store(location: StoreLocation, *, secret: bytes | None = None) -> "Store":
    """The store. `secret` signs the upload URLs of a directory; a reader needs none. Raises Failure."""
    from fleetprof_store.base import StoreError

    try:
        return open_location(location, secret=secret)
    except (StoreError, ValueError) as error:
        raise Failure(
            f"cannot use the store {location.address()}: {error}", next_step="choose another: --store"
        ) from None
