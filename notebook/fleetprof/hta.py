"""The bridge to Meta's HTA (traceinsight, module `hta`): the same traces, in a form that it reads without loss.

HTA takes a trace's rank from the first `"rank": N` of its text and lets equal ranks overwrite each other; a file that
is no strict JSON, or a rank without GPU work, ends its analysis of all ranks; it rounds to µs, which loses short
kernels; and it drops the last ProfilerStep. Guarantees: each rank has one file, whose first rank is its own; what HTA
cannot take is left out with a warning that says why; an iteration whose modules are marked is left out; nothing is
rounded unless HTA_DISABLE_NS_ROUNDING is set by the user. Traces are linked where they can be used as they are, and
copied where they lie elsewhere or must be changed.
"""

import json
import os
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetprof_analyzer.reading.decompress import read_blocks
from fleetprof_analyzer.reading.repair import repair
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_api.errors import FleetprofError
from fleetprof_api.report.report import Report
from isal import igzip

from fleetprof.marked import leave_out_marked
from fleetprof.places import Place, TraceMissing

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis

_RANK: Final = re.compile(rb'"rank":\s+(\d+)')
_GZIP_MAGIC: Final = b"\x1f\x8b"
_LOST: Final = frozenset(
    {
        ProblemKind.TRUNCATED,
        ProblemKind.CORRUPT_GZIP,
        ProblemKind.LOST_EVENTS,
        ProblemKind.REFUSED,
        ProblemKind.UNREADABLE,
    }
)
_EMPTY: Final = frozenset({ProblemKind.EMPTY_FILE, ProblemKind.NOT_A_TRACE, ProblemKind.NO_EVENTS})
_ROUNDING: Final = "HTA_DISABLE_NS_ROUNDING"
_INSTALL: Final = "pip install traceinsight 'pandas<3'"


class NothingForHTA(FleetprofError, ValueError):
    """There is no trace that HTA could read; the message says why of each."""


def export_traces(report: Report, place: Place, folder: Path) -> dict[int, Path]:
    """Makes `folder` (new, or empty) one that HTA opens as it is; the files by rank.

    Warns of each rank that is left out. Raises NothingForHTA, FileExistsError where there is something in the folder,
    StoreError, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: HTA would read what is there; give a new folder")
    files: dict[int, Path] = {}
    left_out: list[str] = []
    for source, number, reason in _choose(report):
        if not reason:
            try:
                files[number] = _export(place, source, number, folder)
                continue
            except (TraceMissing, LimitExceeded, ValueError) as error:
                reason = str(error)
        left_out.append(f"{source}: {reason}")
    if not files:
        raise NothingForHTA(f"HTA could read none of these traces: {'; '.join(left_out) or 'the report has none'}")
    for reason in left_out:
        warnings.warn(f"left out for HTA: {reason}", stacklevel=3)
    return files


def open_analysis(
    report: Report, place: Place, folder: Path | None, *, include_last_profiler_step: bool
) -> "TraceAnalysis":
    """These traces in HTA; without a folder, one that goes with the returned object. Raises also ImportError."""
    kind, options = _import_hta()
    kept = folder or Path(tempfile.mkdtemp(prefix="fleetprof-hta-"))
    try:
        files = export_traces(report, place, kept)
        with _unrounded(options):
            analysis: TraceAnalysis = kind(
                trace_files={rank: str(path.absolute()) for rank, path in files.items()},
                trace_dir=str(kept.absolute()),
                include_last_profiler_step=include_last_profiler_step,
            )
    except BaseException:
        if folder is None:
            shutil.rmtree(kept, ignore_errors=True)
        raise
    if folder is None:
        # HTA reads the files again when it writes an overlay.
        weakref.finalize(analysis, shutil.rmtree, kept, ignore_errors=True)
    return analysis


def _choose(report: Report) -> Iterator[tuple[str, int, str]]:
    """(source, its rank for HTA, why it is left out or "") of each trace."""
    has_gpu = any(rank.kind == "gpu" for rank in report.ranks)
    damaged = {problem.source: problem.kind for problem in report.problems if problem.kind in _LOST | _EMPTY}
    taken: set[int] = set()
    for rank in report.ranks:
        number = 0 if rank.rank is None and len(report.ranks) == 1 else rank.rank
        kind = damaged.pop(rank.source, "")
        if number is None:
            yield rank.source, -1, "nothing says which rank it is"
        elif number in taken:
            yield rank.source, number, f"another trace of rank {number} is used"
        elif rank.source.endswith("summary.json.gz"):
            yield rank.source, number, f"the trace of rank {number} stayed where it was taken"
        elif kind:
            yield rank.source, number, f"damaged ({kind}), which ends HTA's reading of all ranks"
        elif rank.kind == "cpu" and has_gpu:
            yield rank.source, number, "no work on a GPU, which ends HTA's breakdowns of all ranks"
        else:
            taken.add(number)
            yield rank.source, number, ""
    for source, kind in damaged.items():
        yield source, -1, f"nothing to read ({kind})"


def _export(place: Place, source: str, rank: int, folder: Path) -> Path:
    """One trace as HTA needs it. Raises TraceMissing, LimitExceeded, and ValueError for what cannot be mended."""
    with place.open(source) as file:
        packed = file.read(2) == _GZIP_MAGIC
    with place.open(source) as file:
        stored = b"".join(read_blocks(file, Problems(), TraceLimits()))
    text = leave_out_marked(stored)
    found = _RANK.search(text)
    is_ready = text is stored and _is_object(text) and found is not None and int(found[1]) == rank
    if not is_ready:
        target = folder / f"rank-{rank}.json.gz"
        text = _with_rank(text, rank)
        with igzip.open(target, "wb") as out:  # type: ignore[no-untyped-call]
            out.write(text)
        return target
    target = folder / f"rank-{rank}.json{'.gz' if packed else ''}"
    path = place.path(source)
    if path is not None:
        target.symlink_to(path)
        return target
    with place.open(source) as file, target.open("wb") as copy:
        shutil.copyfileobj(file, copy)
    return target


def _is_object(text: bytes) -> bool:
    """Tells whether HTA can read it. Only its own parser knows: others take what it refuses, and the reverse."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _with_rank(text: bytes, rank: int) -> bytes:
    """The trace as an object with its rank in front. Raises ValueError for what is no JSON."""
    text = repair(text).strip()
    head = b'{"distributedInfo": {"rank": %d},\n' % rank
    text = head + (b'"traceEvents": ' + text + b"}" if text.startswith(b"[") else text[1:])
    if not _is_object(text):
        raise ValueError("it is no JSON, which ends HTA's reading of all ranks")
    return text


def _import_hta() -> tuple[Any, Any]:
    """(TraceAnalysis, HTA's options)."""
    try:
        from hta.configs.env_options import HTAEnvOptions
        from hta.trace_analysis import TraceAnalysis
    except ModuleNotFoundError as error:
        if error.name == "hta":
            raise ImportError(f"HTA is not installed: {_INSTALL}", name="hta") from None
        if (error.name or "").startswith("hta."):
            raise ImportError(
                "the module hta here is not Meta's (the package `hta` on PyPI is another project): "
                f"pip uninstall hta; {_INSTALL}",
                name="hta",
            ) from None
        raise
    import pandas

    if int(pandas.__version__.partition(".")[0]) >= 3:
        warnings.warn(f"HTA fails on some traces with pandas {pandas.__version__}: {_INSTALL}", stacklevel=4)
    return TraceAnalysis, HTAEnvOptions.instance()


@contextmanager
def _unrounded(options: Any) -> Iterator[None]:
    """HTA reads without rounding, unless the user's environment says otherwise."""
    before = options.disable_ns_rounding()
    if _ROUNDING not in os.environ:
        options.set_disable_ns_rounding(True)
    try:
        yield
    finally:
        options.set_disable_ns_rounding(before)
