"""Makes slices, comparisons and tables of whole reports, each in a process with limits (`worker`); one at a time.

Guarantees: a report costs this process no more than its bytes in pieces and what is made of it, which is bounded; the
slices of the last few older reports are kept. For several threads at once.
"""

import logging
import os
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import IO, Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.process.import_path import module_command, own_environment
from fleetprof_api.report.report import MOST_REPORT_BYTES, UnreadableReport
from fleetprof_store.base import Store

REFUSED: Final = 3
"""Exit code of the worker where its output says why."""
_WORKER: Final = "fleetprof_webui.reports.worker"
_KEPT: Final = 8
_PIECE_BYTES: Final = 1 << 20
_MOST_MADE_BYTES: Final = 128 << 20
_PATIENCE_S: Final = 120.0
_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "LANG", "TMPDIR")

log = logging.getLogger(__name__)

Reference = tuple[str, str]
"""Namespace and uid of a report."""


class WholeReports:
    """Makes slices, comparisons and tables of the reports of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, str, str], dict[str, bytes]] = OrderedDict()
        self._turn = threading.Lock()

    def slice(self, namespace: str, uid: str, name: str) -> bytes:
        """A slice of a report that was written without it. Raises NotFound, UnreadableReport, StoreError."""
        key = (namespace, uid, self._store.head(keys.report_key(namespace, uid)).version)
        with self._turn:
            if not key[2] or (made := self._kept.get(key)) is None:
                packed = self._run("slices", [(namespace, uid)])
                made = self._kept[key] = msgspec.msgpack.decode(packed, type=dict[str, bytes])
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
        if name not in made:
            raise UnreadableReport(f"its part {name} cannot be made")
        return made[name]

    def head(self, namespace: str, uid: str) -> bytes:
        """The slice `head` alone, which is soon made. Raises NotFound, UnreadableReport, StoreError."""
        with self._turn:
            return self._run("head", [(namespace, uid)])

    def compare(self, base: Reference, new: Reference, *, by_time: bool) -> bytes:
        """The comparison of two reports, as JSON. Raises NotFound, UnreadableReport, StoreError."""
        with self._turn:
            return self._run("compare_by_time" if by_time else "compare", [base, new])

    def pack_tables(self, namespace: str, uid: str) -> bytes:
        """A report's tables as Parquet files in one archive. Raises NotFound, UnreadableReport, StoreError."""
        with self._turn:
            return self._run("tables", [(namespace, uid)])

    def _run(self, command: str, reports: Sequence[Reference]) -> bytes:
        process = subprocess.Popen(
            module_command(_WORKER, command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=own_environment({name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}),
        )
        ends = threading.Timer(_PATIENCE_S, process.kill)
        ends.start()
        try:
            made = self._talk(process, reports)
        finally:
            ends.cancel()
            process.kill()
            process.wait()
        if process.returncode == REFUSED:
            raise UnreadableReport(made.decode(errors="replace"))
        if process.returncode != 0:
            raise UnreadableReport("it takes more memory or time than this service has for it")
        return made

    def _talk(self, process: subprocess.Popen[bytes], reports: Sequence[Reference]) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout as answer:
            try:
                with process.stdin as pipe:
                    for namespace, uid in reports:
                        self._send(keys.report_key(namespace, uid), pipe)
            except BrokenPipeError:
                log.info("the worker ended before it had read all")
            made = answer.read(_MOST_MADE_BYTES + 1)
        if len(made) <= _MOST_MADE_BYTES:
            process.wait()
        return made

    def _send(self, key: str, pipe: IO[bytes]) -> None:
        """The report in pieces. Raises NotFound, UnreadableReport, StoreError, BrokenPipeError."""
        size_bytes = self._store.head(key).size_bytes
        if size_bytes > MOST_REPORT_BYTES:
            raise UnreadableReport(f"it is larger than {MOST_REPORT_BYTES >> 20} MiB")
        pipe.write(size_bytes.to_bytes(8, "big"))
        with self._store.open(key) as stream:
            left = size_bytes
            while left and (piece := stream.read(min(_PIECE_BYTES, left))):
                pipe.write(piece)
                left -= len(piece)
