"""Reads one rank's trace: file object in, `Trace` out.

gunzip -> blocks cut at event borders -> typed decode -> columns. Guarantees: untrusted input is read within
`TraceLimits` (`LimitExceeded` names the one that is passed); memory is that of the kept columns plus a few blocks; what
can be read is read, and what is lost is counted. Layouts: plain or gzip, object or bare list, one line or many, µs with
or without decimals, with or without baseTimeNanoseconds, old and new category names, CUDA and ROCm.
"""

from dataclasses import replace
from typing import IO, Final

from fleetprof_analyzer.reading.ascend import join_threads
from fleetprof_analyzer.reading.columns.columns import RowCollector
from fleetprof_analyzer.reading.decompress import read_blocks
from fleetprof_analyzer.reading.event import AS_EVENTS
from fleetprof_analyzer.reading.event_stream import EventStream
from fleetprof_analyzer.reading.metadata import read_metadata
from fleetprof_analyzer.reading.plausibility import drop_impossible
from fleetprof_analyzer.reading.scanning import make_scanner
from fleetprof_analyzer.trace.limits import TraceLimits
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import NO_ROWS, Category, Rows, Trace

# Traces without a base time: Unix µs since 2001 are absolute, smaller numbers count from somewhere.
_ABSOLUTE_FROM_NS: Final = 10**18
_SAYS_WHY_EMPTY: Final = (
    ProblemKind.EMPTY_FILE,
    ProblemKind.NOT_A_TRACE,
    ProblemKind.CORRUPT_GZIP,
    ProblemKind.UNKNOWN_DEVICE,
)


def read_trace(file: IO[bytes], source: str, problems: Problems, limits: TraceLimits | None = None) -> Trace:
    """Reads a whole trace. `source` is the name to report it by. Raises LimitExceeded, and OSError of the file."""
    limits = limits or TraceLimits()
    columns = RowCollector(problems, limits)
    scanner = make_scanner(columns)
    take = None if scanner is None else scanner.take
    stream = EventStream(read_blocks(file, problems, limits), problems, limits, AS_EVENTS, take)
    for events in stream:
        if scanner is not None:
            scanner.hand_over()
        columns.add(events)
    if scanner is not None:
        scanner.hand_over()
    metadata = read_metadata(stream.metadata, problems)
    rows, vocabulary = columns.rows(), columns.vocabulary
    absolute = len(rows) > 0 and int(rows.start_ns.min()) >= _ABSOLUTE_FROM_NS
    base_ns = 0 if absolute or metadata.base_ns is None else metadata.base_ns
    rows = replace(rows, start_ns=rows.start_ns + base_ns)
    window_end_ns = None if columns.window_end_ns is None else columns.window_end_ns + base_ns
    rows = join_threads(_leave_out_foreign(rows, problems), list(vocabulary.places.places))
    rows = drop_impossible(rows, window_end_ns, problems)
    framed = rows.category == Category.FRAME
    rows, frames = (rows.select(~framed), rows.select(framed)) if framed.any() else (rows, NO_ROWS)
    if len(rows) == 0 and not any(problems.count(kind) for kind in _SAYS_WHY_EMPTY):
        problems.add(ProblemKind.NO_EVENTS, _say_nothing(columns.event_count))
    absolute = len(rows) > 0 and int(rows.start_ns.min()) >= _ABSOLUTE_FROM_NS
    return Trace(
        source=source,
        metadata=metadata,
        rows=rows,
        names=list(vocabulary.names),
        places=list(vocabulary.places.places),
        shapes=list(vocabulary.shapes),
        inputs=vocabulary.inputs.found,
        collectives=list(vocabulary.collectives),
        time_origin="unix" if absolute else "trace",
        window_start_ns=None if columns.window_start_ns is None else columns.window_start_ns + base_ns,
        window_end_ns=window_end_ns,
        memory=columns.memory.rows(base_ns),
        frames=frames,
        truncated=bool(problems.count(ProblemKind.TRUNCATED) or problems.count(ProblemKind.CORRUPT_GZIP)),
        recorded_permille=columns.recorded_permille(),
        event_count=columns.event_count,
        decoded_bytes=stream.decoded_bytes,
        base_ns=base_ns,
    )


def _say_nothing(event_count: int) -> str:
    if not event_count:
        return "the trace holds no event"
    return (
        f"none of its {event_count:,} events has both a duration (dur) and a category (cat) that is known, as cpu_op or"
        " kernel: pairs of B and E, and rows without a category, are not read"
    )


def _leave_out_foreign(rows: Rows, problems: Problems) -> Rows:
    foreign = rows.category == Category.FOREIGN
    if not foreign.any():
        return rows
    known = bool((rows.category <= Category.MEMSET).any())
    problems.add(
        ProblemKind.UNKNOWN_DEVICE,
        "work of a device of a kind that is not known (MTIA, HPU, Glow) is not measured"
        + ("" if known else ": the rank is measured as if it had none"),
        int(foreign.sum()),
    )
    return rows.select(~foreign)
