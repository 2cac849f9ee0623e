"""The record of predictions over a local state's captures: each is foretold from the one before it, and compared.

Guarantees: a capture is foretold once; the newest are kept in `whatif.json` of the state, bounded; what
cannot be read is left out, and what cannot be foretold is counted.
"""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from fleetprof_analyzer.capture.folder import NothingToAnalyze
from fleetprof_analyzer.capture.replayed.reading import read_stored
from fleetprof_analyzer.whatif.backtest import Backtest, CheckedPrediction, check, sum_up
from fleetprof_analyzer.whatif.batch_sizes import SizedCapture, predict_size
from fleetprof_analyzer.whatif.changes import CapturedRun, describe_run, find_settings
from fleetprof_analyzer.whatif.edits import BatchSize, read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_analyzer.whatif.replay.graph import CircularWork
from fleetprof_analyzer.whatif.replay.job import NothingToReplay
from fleetprof_api import keys
from fleetprof_api.report.prediction import PredictedValue
from fleetprof_api.report.report import UnreadableReport, read_report
from fleetprof_store.base import Store, StoreError

from fleetprof_cli.local.state import StateDirectory, replace_text
from fleetprof_cli.reports.stored import read_captures
from fleetprof_cli.store_location import open_store

_FILE: Final = "whatif.json"
_MOST_KEPT: Final = 1000
_Runs = list[tuple[str, CapturedRun]]
_MOST_BYTES: Final = 16 << 20


def check_history(state: StateDirectory) -> Backtest:
    """All predictions that the state's captures allow, those kept from before among them. Raises Failure."""
    store = open_store(state.store())
    kept = {one.capture: one for one in _read(state.path / _FILE)}
    missing = 0
    for workload, runs in _read_runs(store).items():
        for number in range(1, len(runs)):
            (before, (uid, run)) = runs[number - 1], runs[number]
            settings = find_settings(before[1], run)
            if not settings or not run.iteration_ns or uid in kept:
                continue
            predicted = _predict(store, workload, runs[:number], settings, run)
            if predicted is None:
                missing += 1
                continue
            checked = check(predicted, float(np.median(run.iteration_ns)), uid)
            name = "/".join(workload)
            kept[uid] = msgspec.structs.replace(checked, workload=name, before=before[0], settings=settings)
    found = list(kept.values())[-_MOST_KEPT:]
    if found:
        replace_text(state.path / _FILE, msgspec.json.encode(found).decode())
    return sum_up(found, missing)


def _read(path: Path) -> list[CheckedPrediction]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        return msgspec.json.decode(path.read_bytes(), type=list[CheckedPrediction])
    except (OSError, msgspec.MsgspecError):
        return []


def _read_runs(store: Store) -> dict[tuple[str, str], _Runs]:
    """The captures of each workload by uid, in the order in which they were taken."""
    runs: dict[tuple[str, str], _Runs] = defaultdict(list)
    for one in reversed(read_captures(store)):
        ledger = one.ledger
        try:
            report = read_report(store.get(keys.report_key(ledger.namespace, ledger.uid)))
        except (StoreError, UnreadableReport):
            continue
        if report.request is not None and report.request.target:
            runs[ledger.namespace, report.request.target].append((ledger.uid, describe_run(report)))
    return runs


def _predict(
    store: Store,
    workload: tuple[str, str],
    before: list[tuple[str, CapturedRun]],
    settings: list[str],
    run: CapturedRun,
) -> PredictedValue | None:
    """From captures at two batch sizes where there are such, else by a replay of the last one's traces."""
    uid, last = before[-1]
    if run.samples is not None and any(isinstance(one, BatchSize) for one in read_edits(settings)):
        sized = [SizedCapture(one.samples, one.iteration_ns) for _, one in _alike(before, last) if one.samples]
        if (line := predict_size(sized, run.samples, settings).iteration_ns) is not None:
            return line
    try:
        job = read_stored(store, workload[0], uid)
    except (NothingToAnalyze, NothingToReplay, CircularWork, StoreError):
        return None
    return predict(replace(job, samples=last.samples), settings, read_edits(settings)).iteration_ns


def _alike(before: _Runs, last: CapturedRun) -> _Runs:
    """The captures on as many ranks."""
    return [one for one in before if one[1].ranks == last.ranks and one[1].iteration_ns]
