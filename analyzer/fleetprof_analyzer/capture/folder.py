"""Makes the report of a folder of traces; and, for every caller, the summary of one file whatever is in it.

Guarantees: one rank's bad file ends as problems of that rank and never spoils the others; traces are streamed, one at a
time in each process.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.kernel_class import KernelClass
from fleetprof_api.report.report import Report
from fleetprof_api.samples import RankSamples
from fleetprof_store.base import StoreError

from fleetprof_analyzer.assembly.report import assemble
from fleetprof_analyzer.capture.cpu_limit import allowed_cpu_s, limit_cpu
from fleetprof_analyzer.capture.memory import free_share, limits_within
from fleetprof_analyzer.capture.stored_capture import read_samples
from fleetprof_analyzer.capture.timeline_files import RankTimeline
from fleetprof_analyzer.capture.workers import work_in_processes
from fleetprof_analyzer.rank.identity import identify, tell_jobs_apart
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import RankSummary, TraceFindings, merge, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import TraceMetadata

Progress = Callable[[int, int, str], None]
"""Called with (traces done, traces in all, source just done)."""

_NO_TRACES: Final = frozenset(
    {"request.json", "ledger.json", "report.json", "samples.json.gz", "samples.json", "summary.json.gz"}
)

# What a process should have to read before it is worth its start.
LEAST_BYTES: Final = 64 << 20
_GZIP_FACTOR: Final = 10

log = logging.getLogger(__name__)


class NothingToAnalyze(FleetprofError):
    """There is no trace where one was looked for; the message says where and what would be one."""


class SeveralJobs(NothingToAnalyze):
    """The traces are not those of one recording of one job; the message says why and what to give."""


def analyze_directory(
    path: Path | str,
    *,
    progress: Progress | None = None,
    kernel_classes: Sequence[KernelClass] = (),
    iteration_range: str = "",
    jobs: int = 1,
) -> Report:
    """The report of all traces (*.json, *.json.gz) below a folder, or of one file. Writes nothing.

    Samples that lie beside a trace as samples.json.gz are used; `kernel_classes` go before the built-in table;
    `iteration_range` is the name of a range that bounds iterations, in place of optimizer steps. Up to `jobs` processes
    read; each of several imports the caller's main module, as multiprocessing's "spawn" does. Raises
    NothingToAnalyze (SeveralJobs where the traces are not of one), FileNotFoundError.
    """
    root = Path(path)
    summaries = summarise_directory(
        root, progress=progress, kernel_classes=kernel_classes, iteration_range=iteration_range, jobs=jobs
    )
    return report_of(root, summaries, kernel_classes)


def report_of(root: Path, summaries: Sequence[RankSummary], kernel_classes: Sequence[KernelClass] = ()) -> Report:
    """The report of the summaries of a folder. Raises SeveralJobs."""
    mixed = tell_jobs_apart([summary.rank for summary in summaries if summary.rank is not None])
    if mixed:
        raise SeveralJobs(f"{root}: {mixed}; give the folder of one")
    return assemble(
        merge([summaries]),
        title=root.resolve().name,
        made_unix_ns=time.time_ns(),
        kernel_classes=kernel_classes,
    )


def summarise_directory(
    root: Path,
    *,
    progress: Progress | None = None,
    kernel_classes: Sequence[KernelClass] = (),
    iteration_range: str = "",
    jobs: int = 1,
) -> list[RankSummary]:
    """One summary for each trace below a folder, or of one file, in their order.

    Raises NothingToAnalyze, FileNotFoundError.
    """
    files = find_traces(root)
    if not files:
        raise NothingToAnalyze(
            f"no *.json or *.json.gz below {root}: give the folder that holds the traces of all ranks"
        )
    jobs = count_jobs([file for file, _ in files], jobs)
    memory_bytes = free_share(jobs)
    pieces = [Piece(file, source, tuple(kernel_classes), iteration_range, memory_bytes) for file, source in files]
    summaries: dict[int, RankSummary] = {}
    for number, summary in work_in_processes(summarise_piece, pieces, jobs, memory_bytes):
        source = pieces[number].source
        summaries[number] = summary_of_killed(source) if summary is None else summary
        if progress is not None:
            progress(len(summaries), len(files), source)
    return [summaries[number] for number in range(len(files))]


@dataclass(frozen=True)
class Piece:
    """One trace to read; `timeline` is the file that its timeline goes to, None for none."""

    file: Path
    source: str
    kernel_classes: tuple[KernelClass, ...]
    iteration_range: str
    memory_bytes: int | None
    timeline: Path | None = None


def count_jobs(files: Sequence[Path], jobs: int) -> int:
    """The number of `jobs` processes that are worth their start."""
    return min(jobs, len(files), 1 + sum(_expected_bytes(file) for file in files) // LEAST_BYTES)


def summarise_piece(piece: Piece) -> RankSummary:
    """The summary of one trace, and its timeline in a file where that is asked for."""
    problems = Problems()
    beside = piece.file.with_name("samples.json.gz")
    is_ours = piece.file.name == "trace.json.gz" and beside.is_file()
    samples = read_samples(lambda: beside.open("rb"), problems) if is_ours else None
    found: list[TraceFindings] = []
    summary = summarise_file(
        lambda: piece.file.open("rb"),
        piece.source,
        samples=samples,
        assigned=None if samples is None else samples.rank,
        terms=RecordingTerms(kernel_classes=piece.kernel_classes, iteration_range=piece.iteration_range),
        problems=problems,
        trace_bytes=_size(piece.file),
        limits=limits_within(piece.memory_bytes),
        show=None if piece.timeline is None else found.append,
    )
    if piece.timeline is not None and found:
        timeline = RankTimeline(summary.rank_number or 0)
        timeline.make(found[0])
        timeline.keep(piece.timeline)
    return summary


def summary_of_killed(source: str) -> RankSummary:
    """The sentence about a trace whose reader was killed."""
    problems = Problems()
    problems.add(
        ProblemKind.REFUSED, "the process that read it was killed; as a rule it needs more memory than there is"
    )
    rank = identify(TraceMetadata(), source, None, Problems())
    return RankSummary(source=source, rank_number=rank, problems=problems.entries(source, rank))


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _expected_bytes(file: Path) -> int:
    size = _size(file)
    return size * _GZIP_FACTOR if file.suffix == ".gz" else size


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
    terms: RecordingTerms,
    problems: Problems,
    trace_bytes: int | None = None,
    limits: TraceLimits | None = None,
    show: Callable[[TraceFindings], None] | None = None,
) -> RankSummary:
    """The summary of one trace, whatever the file holds: nothing that is wrong with it is raised.

    `trace_bytes` is its length as it is stored; `show` is given what was found in it. Only what the store says is
    raised: StoreError.
    """
    try:
        with limit_cpu(allowed_cpu_s(limits or TraceLimits(), trace_bytes)):
            return _summarise(open_file, source, samples, assigned, terms, problems, limits, show)
    except StoreError:
        raise
    except LimitExceeded as error:
        problems.add(ProblemKind.REFUSED, str(error))
    except OSError as error:
        problems.add(ProblemKind.UNREADABLE, f"cannot be read: {error.strerror or error}")
    except MemoryError:
        problems.add(ProblemKind.REFUSED, "it needs more memory than there is; give the analyzer more")
    except Exception as error:
        # A file that nobody foresaw: our fault, told as such, and no reason to lose the other ranks.
        log.exception("%s could not be analysed", source)
        problems.add(ProblemKind.ANALYZER_FAULT, f"{type(error).__name__}: {error}")
    # Its file is there: nobody may say that the rank left none.
    rank = identify(TraceMetadata(), source, assigned, Problems())
    return RankSummary(source=source, rank_number=rank, problems=problems.entries(source, rank))


def _summarise(
    open_file: Callable[[], IO[bytes]],
    source: str,
    samples: RankSamples | None,
    assigned: int | None,
    terms: RecordingTerms,
    problems: Problems,
    limits: TraceLimits | None,
    show: Callable[[TraceFindings], None] | None,
) -> RankSummary:
    with open_file() as file:
        trace = read_trace(file, source, problems, limits)
    # Whose trace it is matters only where it holds something.
    rank = identify(trace.metadata, source, assigned, problems if len(trace.rows) else Problems())
    if samples is not None and samples.trace_id and trace.metadata.trace_id not in ("", samples.trace_id):
        problems.add(
            ProblemKind.TRACE_ID_CONTRADICTED,
            f"carries trace id {trace.metadata.trace_id!r}, expected {samples.trace_id!r}",
        )
    return summarise(trace, samples, rank_number=rank, terms=terms, problems=problems, show=show)
