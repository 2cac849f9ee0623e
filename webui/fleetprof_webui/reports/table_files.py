"""A report's tables as Parquet files in one archive, made when they are asked for.

Guarantees: needs pyarrow, which is no dependency of the service; where it is missing, nothing is offered, and whoever
asks is told what to do.
"""

import tempfile
import zipfile
from functools import cache
from http import HTTPStatus
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from fleetprof_analyzer.views.parquet import PyArrowMissing, write_tables
from fleetprof_api.report.report import Report

from fleetprof_webui.problems import RequestRefused


@cache
def can_write_tables() -> bool:
    """Tells whether this service has what Parquet files need."""
    return find_spec("pyarrow") is not None


def pack_tables(report: Report) -> bytes:
    """A zip archive with `<table>.parquet` for each table (docs/tables.md). Raises RequestRefused, UnreadableReport."""
    packed = BytesIO()
    with tempfile.TemporaryDirectory(prefix="fleetprof-tables-") as folder:
        try:
            written = write_tables(report, Path(folder))
        except PyArrowMissing as error:
            raise RequestRefused(
                HTTPStatus.NOT_IMPLEMENTED,
                str(error),
                "install it beside the service, or run `fleetprof report --tables DIR` where it is",
            ) from None
        # Parquet is compressed already.
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for path in written:
                archive.write(path, path.name)
    return packed.getvalue()
