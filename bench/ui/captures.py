"""The captures that `make bench-ui` opens, made in a folder as the store keeps them.

`large`, one rank of 1.5 million events, made as `make bench-analyzer` makes its traces; `wide`, the timeline of 1,000
ranks × 6 iterations, of which three have events; `many`, the report of 1,000 ranks, whose kernel table has 10,000 rows.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from analyzer.trace_sets import TraceSource
from fleetprof_analyzer.capture.store import analyze_capture, summarise_capture
from fleetprof_analyzer.pyramid.fleet import write_fleet
from fleetprof_analyzer.rank.measures.course import COURSE_CLASSES
from fleetprof_analyzer.slices.stored_report import put_report
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import Report
from fleetprof_store.directory import DirectoryStore
from harness.reports.large_job import enlarge
from isal import igzip

NAMESPACE: Final = "bench"
LARGE: Final = "large"
MANY: Final = "many"
WIDE: Final = "wide"
EVENTS: Final = 1_500_000
RANKS: Final = 1000
LATE_RANK: Final = 637
KERNELS: Final = 10_000
WITH_EVENTS: Final = (0, LATE_RANK, 999)
ROOT: Final = Path(__file__).parents[2]
SHARED: Final = ROOT.parent / "shared" / "traces"
SMALL: Final = ROOT / "tests" / "data" / "traces" / "gpu_slow_rank"


def open_store(folder: Path) -> DirectoryStore:
    """A store in a folder, from which nobody is granted anything."""
    return DirectoryStore(folder, b"of a bench alone", "http://unused.invalid")


def make_captures(folder: Path) -> DirectoryStore:
    """All of them, analysed."""
    store = open_store(folder / "store")
    store.prepare()
    source = TraceSource.of(_read_trace())
    _make_large(store, source, folder / "large")
    _make_wide(store, source, folder / "wide")
    _make_many(store)
    return store


def _read_trace() -> bytes:
    if SHARED.is_dir():
        return gzip.decompress((SHARED / "nccl_a100/nccl_data.json.gz").read_bytes())
    from harness.traces.planted.traces import plant

    return plant(0, iterations=40).text().encode()


def _make_large(store: DirectoryStore, source: TraceSource, folder: Path) -> None:
    source.write_job(folder, 1, EVENTS)
    # One gzip member: a browser inflates no more.
    packed = igzip.compress(igzip.decompress((folder / "rank0.json.gz").read_bytes()))
    store.put(keys.trace_key(NAMESPACE, LARGE, 0), packed)
    _describe(store, LARGE)
    analyze_capture(store, NAMESPACE, LARGE)


def _make_wide(store: DirectoryStore, source: TraceSource, folder: Path) -> None:
    """The traces of a few ranks, and all others like them."""
    source.write_job(folder, len(WITH_EVENTS), 2 * source.event_count)
    for number, rank in enumerate(WITH_EVENTS):
        store.put(keys.trace_key(NAMESPACE, WIDE, rank), (folder / f"rank{number}.json.gz").read_bytes())
    _describe(store, WIDE)
    analysed = analyze_capture(store, NAMESPACE, WIDE)
    _, summaries = summarise_capture(store, NAMESPACE, WIDE)
    report = enlarge(analysed, RANKS, LATE_RANK, late=1, others=(0, 2))
    sizes = {rank: len(store.get(keys.rank_timeline_key(NAMESPACE, WIDE, rank))) for rank in WITH_EVENTS}
    courses = {rank.source: _shift(summaries[at % len(summaries)].course, at) for at, rank in enumerate(report.ranks)}
    store.put(keys.fleet_timeline_key(NAMESPACE, WIDE), write_fleet(report, sizes, courses))
    put_report(store, NAMESPACE, WIDE, report)


def _shift(course: bytes, rank: int) -> bytes:
    """A course like another: a little later, one moment in twenty different, since equal ones would compress."""
    noise = np.random.default_rng(rank)
    shifted = np.roll(np.frombuffer(course, np.uint8), int(noise.integers(0, 20)))
    other = noise.integers(0, len(COURSE_CLASSES), len(shifted), np.uint8)
    return np.where(noise.random(len(shifted)) < 0.05, other, shifted).tobytes()


def _make_many(store: DirectoryStore) -> None:
    for file in sorted(SMALL.glob("rank*.json.gz")):
        store.put(keys.trace_key(NAMESPACE, MANY, int(file.name[4:-8])), file.read_bytes())
    _describe(store, MANY)
    report = enlarge(analyze_capture(store, NAMESPACE, MANY), RANKS, LATE_RANK)
    put_report(store, NAMESPACE, MANY, msgspec.structs.replace(report, kernels=_more(report)))


def _more(report: Report) -> list[object]:
    return [
        msgspec.structs.replace(report.kernels[number % len(report.kernels)], name=f"kernel_{number:05}<float, 4>(int)")
        for number in range(KERNELS)
    ]


def _describe(store: DirectoryStore, uid: str) -> None:
    workload = {"apiVersion": "batch/v1", "kind": "Job", "name": uid}
    request = {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"name": uid},
        "spec": {"target": {"workload": workload}, "window": {"iterations": 5}},
    }
    store.put(keys.request_key(NAMESPACE, uid), json.dumps(request).encode())
    ledger = Ledger(
        uid=uid, name=uid, namespace=NAMESPACE, submitted_unix_ns=1, completed_unix_ns=2, outcome="Complete"
    )
    store.put(keys.ledger_key(NAMESPACE, uid), msgspec.json.encode(ledger))
