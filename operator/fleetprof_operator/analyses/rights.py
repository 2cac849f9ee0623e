"""The rights of one analyzer Job in the object store: read its capture, and write what its command makes.

Guarantees: pure; a key outside the capture's prefix, of another name than those listed here, or too large is refused
with a sentence; ledger, request, traces and samples can be written by no analysis.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleetprof_api import keys
from fleetprof_api.slices.table import SLICES

_MIB: Final = 1 << 20
_SLICES: Final = {f"slices/{name}.json.gz": kind.most_bytes for name, kind in SLICES.items()}
_REPORT: Final = {"report.json": 512 * _MIB, "report.html": 512 * _MIB, "timeline/fleet.bin": 64 * _MIB} | _SLICES
_TIMELINE: Final = {"timeline/rank.bin": 256 * _MIB}
_SUMMARY: Final = {"summary.json.gz": _MIB // 8, "operations.bin": 64 * _MIB} | _TIMELINE
# By command of `fleetprof-analyzer`: what it writes beside the ledger, and of a rank; with the most bytes of each.
_WRITES: Final[Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]]] = {
    "report": (_REPORT, _TIMELINE),
    "summarise": ({}, _SUMMARY),
    "merge": (_REPORT, {}),
}
_READS: Final = re.compile(
    r"request\.json|ledger\.json|ranks/\d{1,7}/(?:trace\.json\.gz|samples\.json\.gz|summary\.json\.gz|operations\.bin)"
)
_OF_A_RANK: Final = re.compile(r"ranks/(0|[1-9]\d{0,6})/([a-z.]+)")
_TIMELINE_OF_A_RANK: Final = re.compile(r"timeline/rank-(0|[1-9]\d{0,6})\.bin")


@dataclass(frozen=True, slots=True)
class AnalysedCapture:
    """The capture that a Job works on, and the command that it runs."""

    namespace: str
    uid: str
    command: str

    def prefix(self) -> str:
        """The prefix of all keys of this capture."""
        return keys.request_prefix(self.namespace, self.uid)


def find_read_problem(capture: AnalysedCapture, key: str) -> str:
    """The reason why the Job may not read this; empty when it may."""
    prefix = capture.prefix()
    if key.startswith(prefix) and _READS.fullmatch(key[len(prefix) :]):
        return ""
    return f"{key[:200]!r} is not an input of this analysis, which reads {prefix}"


def of_a_rank(key: str) -> bool:
    """Tells whether a key belongs to one rank, which must have something in the store already."""
    return "/ranks/" in key or "/timeline/rank-" in key


def find_write_problem(capture: AnalysedCapture, key: str, size_bytes: int, stored_ranks: frozenset[int]) -> str:
    """The reason why the Job may not write this; empty when it may. It writes those ranks that the store has any of."""
    prefix = capture.prefix()
    rest = key[len(prefix) :] if key.startswith(prefix) else ""
    of_capture, of_ranks = _WRITES[capture.command]
    most = of_capture.get(rest)
    if (found := _OF_A_RANK.fullmatch(rest)) and int(found[1]) in stored_ranks:
        most = of_ranks.get(found[2])
    if (found := _TIMELINE_OF_A_RANK.fullmatch(rest)) and int(found[1]) in stored_ranks:
        most = of_ranks.get("timeline/rank.bin")
    if most is None:
        return f"{key[:200]!r} is not what `{capture.command}` of {prefix} writes"
    return f"{key!r} would have {size_bytes:,} bytes, {most:,} are allowed" if size_bytes > most else ""
