"""One capture as the object store holds it: what was asked, what happened, and which files there are of which rank.

Guarantees: reads `v1/<namespace>/<uid>/` only; a damaged request, ledger or samples file costs what it would have told
and is a problem in the report, never an error. Errors of the store itself are raised.
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import Problem, RequestInfo
from fleetprof_api.samples import MOST_BYTES, MOST_DECODED_BYTES, RankSamples
from fleetprof_api.samples import SCHEMA_VERSION as SAMPLES_VERSION
from fleetprof_store.base import NotFound, Store

from fleetprof_analyzer.capture.request_info import (
    asked_iteration_range,
    asked_kernel_classes,
    describe_request,
    read_request,
    sends_chosen_traces,
)
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.trace.problems import ProblemKind, Problems

_RANK: Final = re.compile(r"0|[1-9]\d{0,6}")


@dataclass(slots=True)
class RankFiles:
    """Sizes in bytes of what the store holds of one rank; None where there is nothing."""

    trace_bytes: int | None = None
    samples_bytes: int | None = None
    summary_bytes: int | None = None
    operations_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureInputs:
    """A capture's facts; `ranks` in rank order, those with a trace or a summary."""

    namespace: str
    uid: str
    request: RequestInfo
    terms: RecordingTerms
    ledger: Ledger | None = None
    ranks: dict[int, RankFiles] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    sends_chosen_traces: bool = False

    @property
    def is_there(self) -> bool:
        """Tells whether the store holds anything of it."""
        return self.ledger is not None or bool(self.ranks) or bool(self.problems)


def read_capture(store: Store, namespace: str, uid: str) -> CaptureInputs:
    """Reads all that the store holds of a capture. Raises StoreError; ValueError for a name that cannot be."""
    problems: list[Problem] = []
    ledger = _read_ledger(store, namespace, uid, problems)
    profile_request = read_request(get_if_there(store, keys.request_key(namespace, uid)))
    request = describe_request(profile_request, uid, namespace, ledger)
    return CaptureInputs(
        namespace=namespace,
        uid=uid,
        request=request,
        terms=RecordingTerms(
            request.start_mode,
            request.asked_first_step,
            request.asked_iterations,
            asked_kernel_classes(profile_request),
            asked_iteration_range(profile_request),
        ),
        ledger=ledger,
        ranks=_list_ranks(store, namespace, uid),
        problems=problems,
        sends_chosen_traces=sends_chosen_traces(profile_request),
    )


def read_samples(open_file: Callable[[], IO[bytes]], problems: Problems) -> RankSamples | None:
    """Samples from `samples.json.gz`, read within limits of their own; what is unreadable is counted and left out.

    None where there is no such file, too. Raises StoreError.
    """
    try:
        with open_file() as packed:
            data = packed.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"longer than {MOST_BYTES:,} bytes")
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MOST_DECODED_BYTES + 1)
        if len(text) > MOST_DECODED_BYTES:
            raise ValueError(f"longer than {MOST_DECODED_BYTES:,} bytes")
        samples = msgspec.json.decode(text, type=RankSamples)
        if samples.schema_version > SAMPLES_VERSION:
            raise ValueError(f"schema version {samples.schema_version}, this fleetprof reads {SAMPLES_VERSION}")
    except (NotFound, FileNotFoundError):
        return None
    except (OSError, EOFError, ValueError, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        problems.add(ProblemKind.SAMPLES_UNREADABLE, f"samples.json.gz cannot be read: {reason}")
        return None
    return samples


def get_if_there(store: Store, key: str) -> bytes | None:
    """An object, or None. Raises StoreError."""
    try:
        return store.get(key)
    except NotFound:
        return None


def _read_ledger(store: Store, namespace: str, uid: str, problems: list[Problem]) -> Ledger | None:
    data = get_if_there(store, keys.ledger_key(namespace, uid))
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Ledger)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(
            Problem(kind=ProblemKind.LEDGER_UNREADABLE, message=f"ledger.json cannot be read: {error}"[:300])
        )
        return None


def _list_ranks(store: Store, namespace: str, uid: str) -> dict[int, RankFiles]:
    found: dict[int, RankFiles] = {}
    prefix = keys.request_prefix(namespace, uid) + "ranks/"
    for info in store.list(prefix):
        path = PurePosixPath(info.key.removeprefix(prefix))
        if len(path.parts) != 2 or not _RANK.fullmatch(path.parts[0]):
            continue
        files = found.setdefault(int(path.parts[0]), RankFiles())
        match path.name:
            case "trace.json.gz":
                files.trace_bytes = info.size_bytes
            case "samples.json.gz":
                files.samples_bytes = info.size_bytes
            case "summary.json.gz":
                files.summary_bytes = info.size_bytes
            case "operations.bin":
                files.operations_bytes = info.size_bytes
    return {
        rank: files
        for rank, files in sorted(found.items())
        if files.trace_bytes is not None or files.summary_bytes is not None
    }
