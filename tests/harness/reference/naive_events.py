"""Reads a trace the plain way, for the naive twins of measures: json, Decimal, one object per row."""

import gc
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

GPU = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
COPIES = {"gpu_memcpy", "Memcpy"}
RUNTIME = {
    "cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "xpu_driver", "privateuse1_runtime",
    "privateuse1_driver", "Runtime",
}  # fmt: skip
OPERATORS = {"cpu_op", "Operator"}
_READ = GPU | RUNTIME | OPERATORS | {"user_annotation"}
LONGEST_NS = 86_400 * 10**9


@dataclass
class Row:
    """One row; `place` is (device, stream) on a GPU, else (process, thread)."""

    category: str
    name: str
    place: tuple[str, str]
    start: int
    end: int
    correlation: int
    args: dict[str, Any] = field(default_factory=dict)


@contextmanager
def no_collections() -> Iterator[None]:
    """No search for garbage inside: none is made here, and to look at millions of objects takes longer than to read."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@no_collections()
def read_rows(document: Any) -> list[Row]:
    """All rows that have a duration and a category that some measure reads."""
    events = document["traceEvents"] if isinstance(document, dict) else document
    base = int(document.get("baseTimeNanoseconds", 0)) if isinstance(document, dict) else 0
    rows = []
    for e in events:
        if e.get("ph") != "X" or e.get("cat") not in _READ:
            continue
        start, length = int(Decimal(e["ts"]) * 1000), int(Decimal(e["dur"]) * 1000)
        if not 0 <= length <= LONGEST_NS:
            continue
        args = e.get("args") or {}
        place = (str(e["pid"]), str(e["tid"]))
        if e["cat"] in GPU:
            place = (str(args.get("device", e["pid"])), str(args.get("stream", e["tid"])))
        number = args.get("correlation", -1)
        number = number if isinstance(number, int) else -1
        rows.append(Row(e["cat"], e["name"], place, start, start + length, number, args))
    if rows and min(row.start for row in rows) < 10**18:
        for row in rows:
            row.start += base
            row.end += base
    return rows


@no_collections()
def load(file: Path) -> Any:
    """The document of a plain or gzip file."""
    data = file.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return json.loads(text, parse_float=Decimal)
