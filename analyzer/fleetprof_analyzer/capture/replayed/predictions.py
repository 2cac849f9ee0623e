"""Adds to a report what is predicted of its job in advance, for the page of the report.

Guarantees: a prediction that cannot be made costs nobody the report; traces of more events than `MOST_EVENTS` are not
read a second time, which is said.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
from fleetprof_api.report.prediction import Predictions
from fleetprof_api.report.report import Report

from fleetprof_analyzer.capture.folder import NothingToAnalyze
from fleetprof_analyzer.capture.replayed.reading import OpenTrace, read_files
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.whatif.batch_sizes import find_samples
from fleetprof_analyzer.whatif.foresight import foresee
from fleetprof_analyzer.whatif.replay.graph import CircularWork
from fleetprof_analyzer.whatif.replay.job import NothingToReplay, read_job

MOST_EVENTS: Final = 500_000

log = logging.getLogger(__name__)


def add_predictions(report: Report, traces: Sequence[OpenTrace], terms: RecordingTerms | None = None) -> Report:
    """The report with its predictions. `traces` are those that its ranks were read of."""
    try:
        made = _predict(report, traces, terms)
    except (NothingToAnalyze, NothingToReplay) as error:
        made = Predictions(refused=str(error))
    except CircularWork:
        made = Predictions(refused="its work seems to wait for itself: it cannot be replayed")
    except Exception:
        log.exception("no prediction in advance of %s", report.title)
        return report
    return msgspec.structs.replace(report, predictions=made)


def _predict(report: Report, traces: Sequence[OpenTrace], terms: RecordingTerms | None) -> Predictions:
    events = sum(rank.event_count for rank in report.ranks)
    if len(traces) < len(report.ranks):
        return Predictions(refused="not all ranks have a trace here")
    if events > MOST_EVENTS:
        return Predictions(refused=f"{events:,} events are too many to be replayed in advance")
    read = read_files(traces, "of this report")
    if not len(read) == len(report.ranks) == len(traces):
        return Predictions(refused="a trace could not be read")
    job = read_job(read, terms)
    found = report.stragglers
    late = [one.rank for one in found.ranks] if found is not None and found.verdict == "straggler" else []
    return foresee(replace(job, samples=find_samples(report)), late)
