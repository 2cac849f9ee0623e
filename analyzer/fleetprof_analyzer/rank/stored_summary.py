"""A rank's summary as it lies in the object store: `summary.json.gz`, with what tells whether it still holds.

Made in a Job pod or beside the trainer, merged somewhere else. Guarantees: at most `MOST_BYTES`; a summary made by
another version, or of another file than the store holds now, is recognised and not used; bytes from outside are read
within limits; equal summaries give equal bytes.
"""

import gzip
import io
from typing import Final

import msgspec
from fleetprof_api import __version__

from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS_BYTES
from fleetprof_analyzer.rank.summary import RankSummary

SCHEMA_VERSION: Final = 1
MOST_BYTES: Final = 100 << 10
_DECODED_BYTES: Final = 4 << 20
_LEVEL: Final = 9


class Unusable(Exception):
    """Not a summary that can be merged here; the message says why."""


class _StoredSummary(msgspec.Struct, kw_only=True):
    """`trace_bytes`, `samples_bytes`: lengths of the compressed files it was made of; 0 where there was none."""

    schema_version: int = SCHEMA_VERSION
    made_by: str
    trace_bytes: int
    samples_bytes: int
    summary: RankSummary


class _Version(msgspec.Struct):
    schema_version: int
    made_by: str = ""


# Made here, in one thread: msgspec 0.22 crashes where two threads meet a type for the first time, as in a merge.
_READ_VERSION: Final = msgspec.json.Decoder(_Version)
_READ_STORED: Final = msgspec.json.Decoder(_StoredSummary)


def pack_summary(summary: RankSummary, *, trace_bytes: int, samples_bytes: int) -> bytes:
    """The object's bytes. Raises Unusable when they would pass `MOST_BYTES`.

    Longer operations than `MOST_OPERATIONS_BYTES` are left out: they lie beside it (`fleetprof_api.keys`). Kernels are
    kept without their streams where these would pass the limit.
    """
    if len(summary.operations) > MOST_OPERATIONS_BYTES:
        summary = msgspec.structs.replace(summary, operations=b"")
    stored = _StoredSummary(made_by=__version__, trace_bytes=trace_bytes, samples_bytes=samples_bytes, summary=summary)
    data = _compress(stored)
    if len(data) > MOST_BYTES and any(group.streams for group in summary.kernels):
        kernels = [msgspec.structs.replace(group, streams=[]) for group in summary.kernels]
        stored.summary = msgspec.structs.replace(summary, kernels=kernels)
        data = _compress(stored)
    if len(data) > MOST_BYTES:
        raise Unusable(f"the summary has {len(data):,} bytes, {MOST_BYTES:,} are allowed")
    return data


def _compress(stored: _StoredSummary) -> bytes:
    return gzip.compress(msgspec.json.encode(stored), compresslevel=_LEVEL, mtime=0)


def unpack_summary(
    data: bytes, rank: int, *, trace_bytes: int | None = None, samples_bytes: int | None = None
) -> RankSummary:
    """The summary of `rank`. Where sizes are given, it must have been made of files of that size. Raises Unusable."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(_DECODED_BYTES + 1)
        if len(text) > _DECODED_BYTES:
            raise Unusable(f"longer than {_DECODED_BYTES:,} bytes")
        version = _READ_VERSION.decode(text)
        if (version.schema_version, version.made_by) != (SCHEMA_VERSION, __version__):
            raise Unusable(
                f"made by fleetprof {version.made_by[:40] or 'of unknown version'} (form {version.schema_version}), "
                f"this is {__version__} (form {SCHEMA_VERSION}); use one version in operator, sidecar and analyzer"
            )
        stored = _READ_STORED.decode(text)
    except (OSError, EOFError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise Unusable(f"cannot be read: {error}") from None
    if stored.summary.rank_number != rank:
        raise Unusable(f"is of rank {stored.summary.rank_number}")
    if trace_bytes not in (None, stored.trace_bytes) or samples_bytes not in (None, stored.samples_bytes):
        raise Unusable("was made of other files than the store holds now")
    return stored.summary
