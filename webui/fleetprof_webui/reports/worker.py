"""The process that reads whole reports: it makes slices of older ones, a comparison, tables.

stdin: each report, its length before it in 8 bytes. stdout: what the command makes, or with exit code `REFUSED` why
nothing can be made, for people. Guarantees: the process ends before it takes more memory or processor time than
`_MOST_DATA_BYTES` and `_MOST_CPU_S`, so that no report can cost its parent anything.
"""

import gzip
import resource
import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final
from zipfile import ZIP_STORED, ZipFile

import msgspec
from fleetprof_analyzer.assembly.diff import compare
from fleetprof_analyzer.slices.writer import encode_slice, write_slices
from fleetprof_analyzer.views.parquet import write_tables
from fleetprof_api.errors import FleetprofError
from fleetprof_api.report.report import Report, read_report

from fleetprof_webui.reports.whole_reports import REFUSED

_MOST_DATA_BYTES: Final = 640 << 20
"""Reading the largest report takes some 200 MiB."""
_MOST_CPU_S: Final = 60


def _make_slices(report: Report) -> bytes:
    """A map of their names in MessagePack."""
    return msgspec.msgpack.encode(write_slices(report))


def _make_head(report: Report) -> bytes:
    """The slice that a catalog reads, as gzip."""
    return gzip.compress(encode_slice(report, "head"), mtime=0)


def _compare(base: Report, new: Report) -> bytes:
    return msgspec.json.encode(compare(base, new))


def _compare_by_time(*sides: Report) -> bytes:
    """From the earlier to the later, where both times are known."""
    times = [report.request.submitted_unix_ns if report.request is not None else 0 for report in sides]
    return _compare(*(sides[::-1] if all(times) and times[0] > times[1] else sides))


def _pack_tables(report: Report) -> bytes:
    """A zip archive with `<table>.parquet` for each table (docs/tables.md)."""
    packed = BytesIO()
    # Parquet is compressed already.
    with TemporaryDirectory(prefix="fleetprof-tables-") as folder, ZipFile(packed, "w", ZIP_STORED) as archive:
        for path in write_tables(report, Path(folder)):
            archive.write(path, path.name)
    return packed.getvalue()


_COMMANDS: Final[Mapping[str, Callable[..., bytes]]] = {
    "slices": _make_slices,
    "head": _make_head,
    "compare": _compare,
    "compare_by_time": _compare_by_time,
    "tables": _pack_tables,
}


def main() -> None:
    """Does one command."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_DATA_BYTES, _MOST_DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    try:
        made = _COMMANDS[sys.argv[1]](*_read_reports(sys.stdin.buffer))
    except FleetprofError as error:
        sys.stdout.write(str(error))
        sys.exit(REFUSED)
    sys.stdout.buffer.write(made)


def _read_reports(stream: BinaryIO) -> list[Report]:
    reports = []
    while length := stream.read(8):
        reports.append(read_report(stream.read(int.from_bytes(length, "big"))))
    return reports


if __name__ == "__main__":
    main()
