"""Makes reports: of a capture in the object store, or of a folder of traces that are already there.

Guarantees: one rank's bad file ends as problems of that rank and never spoils the others; traces are streamed, one at a
time per worker; what was there before is replaced only by a whole report.
"""

import gzip
import io
import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report import Report, write_report
from fleetprof_api.samples import SCHEMA_VERSION as SAMPLES_VERSION
from fleetprof_api.samples import RankSamples
from fleetprof_api.store.base import NotFound, Store

from fleetprof_analyzer.assembly import assemble
from fleetprof_analyzer.identity import identify
from fleetprof_analyzer.iterations import Asked
from fleetprof_analyzer.limits import Limits, Refused
from fleetprof_analyzer.page import render_page
from fleetprof_analyzer.problems import Kind, Problems
from fleetprof_analyzer.reader import read_trace
from fleetprof_analyzer.request_info import describe_request
from fleetprof_analyzer.summary import RankSummary, merge, summarise

Progress = Callable[[int, int, str], None]
"""Called with (traces done, traces in all, source just done)."""

_NO_TRACES: Final = frozenset({"request.json", "ledger.json", "report.json", "samples.json.gz", "samples.json"})
_SAMPLES_BYTES: Final = 64 << 20


class NothingToAnalyze(Exception):
    """There is no trace where one was looked for; the message says where and what would be one."""


def analyze_capture(store: Store, namespace: str, uid: str, *, progress: Progress | None = None) -> Report:
    """Reads one capture from the store, writes report.json and report.html beside it, and returns the report.

    Ranks without a trace are told by the ledger. Raises StoreError when the store does not answer.
    """
    ledger = _read_ledger(store, namespace, uid)
    request = describe_request(_get(store, keys.request_key(namespace, uid)), uid, namespace, ledger)
    asked = Asked(request.start_mode, request.asked_first_step, request.asked_iterations)
    ranks = _ranks_with_trace(store, namespace, uid)
    summaries: list[list[RankSummary]] = []
    for done, rank in enumerate(ranks, 1):
        source = f"ranks/{rank}/trace.json.gz"
        problems = Problems()
        samples = _decode_samples(_get(store, keys.samples_key(namespace, uid, rank)), problems)
        summary = summarise_file(
            lambda rank=rank: store.open(keys.trace_key(namespace, uid, rank)),  # type: ignore[misc]
            source,
            samples=samples,
            assigned=rank,
            asked=asked,
            problems=problems,
        )
        summaries.append([summary])
        if progress is not None:
            progress(done, len(ranks), source)
    report = assemble(
        merge(summaries), title=request.name or uid, made_unix_ns=time.time_ns(), request=request, ledger=ledger
    )
    store.put(keys.report_page_key(namespace, uid), render_page(report).encode())
    store.put(keys.report_key(namespace, uid), write_report(report))
    return report


def analyze_directory(path: Path | str, *, progress: Progress | None = None) -> Report:
    """The report of all traces (*.json, *.json.gz) below a folder, or of one file. Writes nothing.

    Samples that lie beside a trace as samples.json.gz are used. Raises NothingToAnalyze, FileNotFoundError.
    """
    root = Path(path)
    files = find_traces(root)
    if not files:
        raise NothingToAnalyze(
            f"no *.json or *.json.gz below {root}: give the folder that holds the traces of all ranks"
        )
    summaries = []
    for done, (file, source) in enumerate(files, 1):
        problems = Problems()
        samples = _decode_samples(_read_beside(file), problems)
        summaries.append(
            [
                summarise_file(
                    lambda file=file: file.open("rb"),  # type: ignore[misc]
                    source,
                    samples=samples,
                    assigned=None if samples is None else samples.rank,
                    asked=Asked(),
                    problems=problems,
                )
            ]
        )
        if progress is not None:
            progress(done, len(files), source)
    return assemble(merge(summaries), title=root.resolve().name, made_unix_ns=time.time_ns())


def find_traces(root: Path) -> list[tuple[Path, str]]:
    """(file, source) of everything below `root` that may be a trace, sorted by source."""
    if root.is_file():
        return [(root, root.name)]
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is neither a file nor a folder")
    files = [file for file in root.rglob("*.json*") if file.name.endswith((".json", ".json.gz")) and file.is_file()]
    return sorted(
        ((file, file.relative_to(root).as_posix()) for file in files if file.name not in _NO_TRACES),
        key=lambda item: item[1],
    )


def summarise_file(
    open_file: Callable[[], IO[bytes]],
    source: str,
    *,
    samples: RankSamples | None,
    assigned: int | None,
    asked: Asked,
    problems: Problems,
    limits: Limits | None = None,
) -> RankSummary:
    """The summary of one trace, whatever the file holds: nothing that is wrong with it is raised."""
    try:
        with open_file() as file:
            trace = read_trace(file, source, problems, limits)
    except Refused as error:
        problems.add(Kind.REFUSED, str(error))
    except NotFound:
        problems.add(Kind.RANK_MISSING, "the trace is not in the store any more")
    except OSError as error:
        problems.add(Kind.UNREADABLE, f"cannot be read: {error.strerror or error}")
    else:
        # Whose trace it is matters only where it holds something.
        rank = identify(trace.metadata, source, assigned, problems if len(trace.rows) else Problems())
        if samples is not None and samples.trace_id and trace.metadata.trace_id not in ("", samples.trace_id):
            problems.add(
                Kind.TRACE_ID_CONTRADICTED,
                f"carries trace id {trace.metadata.trace_id!r}, expected {samples.trace_id!r}",
            )
        return summarise(trace, samples, rank_number=rank, asked=asked, problems=problems)
    return RankSummary(source=source, rank_number=assigned, problems=problems.entries(source, assigned))


def _ranks_with_trace(store: Store, namespace: str, uid: str) -> list[int]:
    prefix = keys.request_prefix(namespace, uid) + "ranks/"
    paths: Iterable[PurePosixPath] = (PurePosixPath(info.key) for info in store.list(prefix))
    return sorted({int(p.parent.name) for p in paths if p.name == "trace.json.gz" and p.parent.name.isdecimal()})


def _get(store: Store, key: str) -> bytes | None:
    try:
        return store.get(key)
    except NotFound:
        return None


def _read_ledger(store: Store, namespace: str, uid: str) -> Ledger | None:
    data = _get(store, keys.ledger_key(namespace, uid))
    return None if data is None else msgspec.json.decode(data, type=Ledger)


def _read_beside(trace: Path) -> bytes | None:
    samples = trace.with_name("samples.json.gz")
    return samples.read_bytes() if trace.name == "trace.json.gz" and samples.is_file() else None


def _decode_samples(data: bytes | None, problems: Problems) -> RankSamples | None:
    if data is None:
        return None
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(_SAMPLES_BYTES + 1)
        if len(text) > _SAMPLES_BYTES:
            raise ValueError(f"longer than {_SAMPLES_BYTES:,} bytes")
        samples = msgspec.json.decode(text, type=RankSamples)
        if samples.schema_version > SAMPLES_VERSION:
            raise ValueError(f"schema version {samples.schema_version}, this fleetprof reads {SAMPLES_VERSION}")
    except (OSError, EOFError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        problems.add(Kind.SAMPLES_UNREADABLE, f"samples.json.gz cannot be read: {error}")
        return None
    return samples
