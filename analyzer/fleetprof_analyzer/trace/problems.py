"""Counts what is lost, repaired or doubted while a trace is read, so that the report can say it.

Guarantees: one entry per kind and file, with its count and the first example's words (of our own faults, with those of
all); the kinds are fixed and documented in docs/measures.md.
"""

from enum import StrEnum
from typing import Final

from fleetprof_api.report.report import Problem


class ProblemKind(StrEnum):
    """A problem of the input; the value is `Problem.kind` in the report."""

    EMPTY_FILE = "empty_file"
    NOT_A_TRACE = "not_a_trace"
    NO_EVENTS = "no_events"
    SECOND_RECORDING = "second_recording"
    TRUNCATED = "truncated"
    CORRUPT_GZIP = "corrupt_gzip"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    BAD_METADATA = "bad_metadata"
    REPAIRED_EVENTS = "repaired_events"
    LOST_EVENTS = "lost_events"
    BAD_TIMES = "bad_times"
    NEGATIVE_DURATION = "negative_duration"
    ABSURD_DURATION = "absurd_duration"
    UNKNOWN_DEVICE = "unknown_device"
    RANK_UNKNOWN = "rank_unknown"
    RANK_DUPLICATE = "rank_duplicate"
    RANK_CONTRADICTED = "rank_contradicted"
    TRACE_ID_CONTRADICTED = "trace_id_contradicted"
    RANK_MISSING = "rank_missing"
    RANK_NOT_SUMMARISED = "rank_not_summarised"
    SUMMARY_UNUSABLE = "summary_unusable"
    REPORT_SHORTENED = "report_shortened"
    LEDGER_UNREADABLE = "ledger_unreadable"
    ANALYZER_FAULT = "analyzer_fault"
    SAMPLES_UNREADABLE = "samples_unreadable"
    FIRST_STEP_DIFFERS = "first_step_differs"
    STEPS_DO_NOT_MATCH = "steps_do_not_match"
    ITERATION_FRAGMENT = "iteration_fragment"
    OUTSIDE_RECORDING = "outside_recording"
    RECORDING_PAUSED = "recording_paused"
    WORK_MISSING = "work_missing"
    CLOCKS_DIFFER = "clocks_differ"
    HOST_NOT_RECORDED = "host_not_recorded"


_SENTENCES: Final = {
    ProblemKind.EMPTY_FILE: "the file is empty",
    ProblemKind.TRUNCATED: "the file ends in the middle; what stands before was read",
    ProblemKind.REPAIRED_EVENTS: "events with values that JSON does not allow were repaired and used",
    ProblemKind.LOST_EVENTS: "events that cannot be read were left out",
    ProblemKind.BAD_TIMES: "events without a readable time were left out",
    ProblemKind.NEGATIVE_DURATION: "events with a negative duration were left out",
    ProblemKind.OUTSIDE_RECORDING: "rows far outside of the recording were left out",
    ProblemKind.ABSURD_DURATION: "events with an impossible duration were left out",
    ProblemKind.HOST_NOT_RECORDED: "the trace has no operator and no launch: stages, modules, lines and the causes "
    "of idle time are not known",
}


class Problems:
    """The problems of one file, by kind."""

    def __init__(self) -> None:
        self._counts: dict[ProblemKind, int] = {}
        self._examples: dict[ProblemKind, str] = {}

    def add(self, kind: ProblemKind, example: str = "", count: int = 1) -> None:
        """Counts `count` more of `kind`; the first example is kept, at most 200 characters of it."""
        if count <= 0:
            return
        self._counts[kind] = self._counts.get(kind, 0) + count
        if kind == ProblemKind.ANALYZER_FAULT and kind in self._examples:
            self._examples[kind] += f"; {example[:200]}"
        elif example:
            self._examples.setdefault(kind, example[:200])

    def note(self, kind: ProblemKind, example: str = "") -> None:
        """Counts `kind` unless it was counted already."""
        if kind not in self._counts:
            self.add(kind, example)

    def count(self, kind: ProblemKind) -> int:
        """The number of `kind` that were counted."""
        return self._counts.get(kind, 0)

    def entries(self, source: str, rank: int | None) -> list[Problem]:
        """The report's entries for one file, in the order of `ProblemKind`."""
        return [
            Problem(kind=kind, message=self._message(kind), count=self._counts[kind], source=source, rank=rank)
            for kind in ProblemKind
            if kind in self._counts
        ]

    def _message(self, kind: ProblemKind) -> str:
        sentence, example = _SENTENCES.get(kind, ""), self._examples.get(kind, "")
        if not sentence:
            return example
        return f"{sentence} (first: {example})" if example else sentence
