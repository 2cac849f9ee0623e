"""A rank's summary as it lies in the object store: `summary.json.gz`, with what tells whether it still holds.

Made in a Job pod or beside the trainer, merged somewhere else. Guarantees: at most `MOST_BYTES`; a summary made by
another version, or of another file than the store holds now, is recognised and not used; bytes from outside are read
within limits, their texts are printable (`fleetprof_api.process.foreign_json`), and they speak of their own rank alone;
equal summaries give equal bytes.
"""

import gzip
import io
import zlib
from typing import Final

import msgspec
from fleetprof_api import __version__
from fleetprof_api.errors import FleetprofError
from fleetprof_api.process.foreign_json import pass_door

from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS_BYTES
from fleetprof_analyzer.rank.summary import RankSummary

SCHEMA_VERSION: Final = 1
MOST_BYTES: Final = 100 << 10
_DECODED_BYTES: Final = 2 << 20
_ENCODED_BYTES: Final = 128 << 10
"""Of operations and course in base64: more than `MOST_BYTES` can hold."""
_LEVEL: Final = 9


class Unusable(FleetprofError):
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
    kept without their streams, and modules left out, where these would pass the limit.
    """
    if len(summary.operations) > MOST_OPERATIONS_BYTES:
        summary = msgspec.structs.replace(summary, operations=b"")
    without_streams = [msgspec.structs.replace(group, streams=[]) for group in summary.kernels]
    for kernels, modules in (
        (summary.kernels, summary.modules),
        (without_streams, summary.modules),
        (without_streams, None),
    ):
        stored = _StoredSummary(
            made_by=__version__,
            trace_bytes=trace_bytes,
            samples_bytes=samples_bytes,
            summary=msgspec.structs.replace(summary, kernels=kernels, modules=modules),
        )
        text = msgspec.json.encode(stored)
        data = gzip.compress(text, compresslevel=_LEVEL, mtime=0)
        if len(data) <= MOST_BYTES and len(text) <= _DECODED_BYTES:
            return data
    raise Unusable(
        f"the summary has {len(data):,} bytes, {MOST_BYTES:,} are allowed; "
        f"uncompressed {len(text):,} of {_DECODED_BYTES:,}"
    )


def unpack_summary(
    data: bytes, rank: int, *, trace_bytes: int | None = None, samples_bytes: int | None = None
) -> RankSummary:
    """The summary of `rank`. Raises Unusable.

    Where sizes are given, the files are there: it must have been made of files of that size, and by this version. Where
    they are not, the summary is all there is, and any version of this form may have made it.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(_DECODED_BYTES + 1)
        if len(text) > _DECODED_BYTES:
            raise Unusable(f"longer than {_DECODED_BYTES:,} bytes")
        text = pass_door(text, _ENCODED_BYTES)
        version = _READ_VERSION.decode(text)
        is_ours = version.made_by == __version__ or trace_bytes is None
        if version.schema_version != SCHEMA_VERSION or not is_ours:
            raise Unusable(
                f"made by fleetprof {version.made_by[:40] or 'of unknown version'} (form {version.schema_version}), "
                f"this is {__version__} (form {SCHEMA_VERSION}); capture whole traces of this job (`traces: All`), or "
                "start it again"
            )
        stored = _READ_STORED.decode(text)
        # What is not encoded operations is a name or a sentence.
        rest = msgspec.structs.replace(stored.summary, operations=b"", course=b"")
        pass_door(msgspec.json.encode(rest))
    except (OSError, EOFError, ValueError, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise Unusable(f"cannot be read: {error}") from None
    summary = stored.summary
    if summary.rank_number != rank or (summary.rank is not None and summary.rank.rank != rank):
        raise Unusable(f"is of rank {summary.rank_number}")
    if summary.rank is not None:
        for time_ns in (summary.rank.time_ns, *(device.time_ns for device in summary.rank.devices)):
            parts = time_ns.compute + time_ns.exposed_communication + time_ns.exposed_memory + time_ns.idle
            if parts + time_ns.unrecorded != time_ns.span:
                raise Unusable("tells of times that do not add up")
    if any(problem.rank not in (None, rank) for problem in summary.problems):
        raise Unusable("tells of problems of another rank")
    if trace_bytes not in (None, stored.trace_bytes) or samples_bytes not in (None, stored.samples_bytes):
        raise Unusable("was made of other files than the store holds now")
    return summary
