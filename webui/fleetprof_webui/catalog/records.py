"""A capture's objects as rows of the catalog.

Guarantees: pure; texts and integers fit their columns (`figures`), so that no report can make a statement fail.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetprof_api.ledger import Ledger, LedgerEntry, RankState
from fleetprof_api.slices.head import Head
from fleetprof_api.stored_request import ProfileRequest

from fleetprof_webui.catalog.figures import FIGURES, number, text

RUNNING: Final = "Running"
SELECTOR: Final = "Selector"
_MOST_LABELS: Final = 32
# What controllers and fleetprof write: no two workloads share it, or all do.
_MADE: Final = re.compile(r"(^|/)(controller-uid|pod-template-hash|job-name|fleetprof\.io)($|/)|^fleetprof\.io/")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReportRows:
    """The catalog's row of one report, and the hosts that its ranks ran on."""

    report: Row
    hosts: Sequence[str]


def name_workload(request: ProfileRequest | None, ledger: Ledger | None, uid: str) -> tuple[str, str]:
    """(kind, name) of what was captured; where nothing says it, the capture itself."""
    target = None if request is None else request.spec.target
    if target is not None and target.workload is not None:
        return text(target.workload.kind, 64), text(target.workload.name, 400)
    if target is not None and target.selector is not None:
        labels = [f"{key}={value}" for key, value in sorted((target.selector.match_labels or {}).items())]
        labels += [f"{one.key} {one.operator}" for one in target.selector.match_expressions or []]
        return SELECTOR, text(",".join(labels), 400)
    return "", text(ledger.name if ledger else "", 400) or uid


def label_texts(request: ProfileRequest | None, ledger: Ledger | None) -> list[str]:
    """`key=value` of the labels by which people know a workload: of its pods, and those that a selector names."""
    found = dict(ledger.labels) if ledger is not None else {}
    if request is not None and request.spec.target.selector is not None:
        found |= request.spec.target.selector.match_labels or {}
    kept = [(key, value) for key, value in sorted(found.items()) if not _MADE.search(key)]
    return sorted({text(f"{key}={value}", 400) for key, value in kept[:_MOST_LABELS]})


def request_row(ledger: Ledger | None, uid: str) -> Row:
    """The row of a ledger; `state` is the reason of the Succeeded condition."""
    if ledger is None:
        ledger = Ledger(uid=uid, name="", namespace="")
    reached = Counter(stage for entry in ledger.entries for stage in _reached(entry))
    return {
        "name": text(ledger.name, 253) or uid,
        "requester": text(ledger.requester, 253),
        "state": state_of(ledger),
        "message": text(ledger.message, 1024),
        "finished": bool(ledger.completed_unix_ns),
        "submitted_unix_ns": number(ledger.submitted_unix_ns),
        "completed_unix_ns": number(ledger.completed_unix_ns),
        "targeted": len(ledger.entries),
        **{stage: reached[stage] for stage in ("armed", "captured", "uploaded", "failed")},
    }


def state_of(ledger: Ledger) -> str:
    """The reason of the Succeeded condition, by which `kubectl` tells the state as well."""
    succeeded = next((one.reason for one in ledger.conditions if one.type == "Succeeded"), "")
    return text(ledger.outcome or succeeded, 64) or RUNNING


def report_rows(head: Head) -> ReportRows:
    """The headline figures of a report, and its hosts."""
    row = {figure.name: figure.write(head.figures) for figure in FIGURES}
    return ReportRows(row, sorted({text(host, 253) for host in head.hosts if host}))


def _reached(entry: LedgerEntry) -> list[str]:
    stages = []
    if entry.armed_unix_ns:
        stages.append("armed")
    if entry.written_unix_ns or entry.state is RankState.UPLOADED:
        stages.append("captured")
    if entry.state in (RankState.UPLOADED, RankState.FAILED):
        stages.append(entry.state.value.lower())
    return stages
