"""A ProfileRequest as the API gives it: how it stands, for a display, for a table, for a script.

Guarantees: pure; never raises on what the API gives, also not on what a newer operator wrote.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleetprof_api.request import FailedRanks, Headline, RankCounts, Status
from pydantic import ValidationError

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.terminal.capture_view import CaptureView, Count
from fleetprof_cli.terminal.status_text import judge_end

_NOT_TAKEN_UP: Final = "waiting for fleetprof's operator"
# In the order of a capture's life; the counts of a status include those who got further.
_STAGES: Final = (
    ("armed", "have their order", ""),
    ("captured", "captured", ""),
    ("uploaded", "uploaded", "green"),
    ("failed", "failed", "red"),
)


@dataclass(frozen=True, slots=True)
class RequestState:
    """One ProfileRequest at one moment. `is_deleted` since somebody deleted it."""

    document: Mapping[str, Any]
    is_deleted: bool = False

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self._metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        """metadata.namespace."""
        return str(self._metadata.get("namespace", ""))

    @property
    def uid(self) -> str:
        """metadata.uid, which names the capture in the store."""
        return str(self._metadata.get("uid", ""))

    @property
    def status(self) -> Status:
        """Its status; an empty one where there is none yet."""
        try:
            return Status.model_validate(self.document.get("status") or {})
        except ValidationError:
            return Status()

    @property
    def finished(self) -> bool:
        """Tells whether it has ended, or is not there any more."""
        return self.is_deleted or self.status.completion_time is not None

    @property
    def counts(self) -> RankCounts:
        """The number of ranks by state."""
        return self.status.ranks or RankCounts()

    @property
    def _metadata(self) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = self.document.get("metadata") or {}
        return metadata

    def reason(self) -> str:
        """One word for how it stands."""
        succeeded = self.status.condition("Succeeded")
        if self.is_deleted and self.status.completion_time is None:
            return "Cancelled"
        return succeeded.reason if succeeded else ""

    def sentence(self) -> str:
        """The state in one line."""
        status, counts = self.status, self.counts
        succeeded = status.condition("Succeeded")
        if self.is_deleted and status.completion_time is None:
            return "the request was deleted: the capture is cancelled"
        if succeeded is None:
            return _NOT_TAKEN_UP
        resolved = status.condition("TargetsResolved")
        if not counts.targeted:
            waiting = resolved if resolved and resolved.status != "True" and not self.finished else succeeded
            return f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
        failed = f", {counts.failed} failed" if counts.failed else ""
        counted = f"{counts.uploaded or 0} of {counts.targeted} ranks uploaded{failed}"
        if not self.finished:
            return f"{counted}: {succeeded.reason}"
        return f"{counted}: {succeeded.reason}" + (f", {succeeded.message}" if succeeded.message else "")

    def view(self) -> CaptureView:
        """The request as the progress display shows it."""
        status, counts = self.status, self.counts
        shown = [
            Count(number=number, words=words, style=style)
            for name, words, style in _STAGES
            if (number := getattr(counts, name))
        ]
        if counts.targeted:
            shown.insert(0, Count(number=counts.targeted, words="ranks"))
        return CaptureView(
            title=f"{self.name} of {status.target}" if status.target else self.name,
            sentence=self.sentence(),
            stage=self.reason(),
            counts=shown,
            finished=self.finished,
            began_unix_ns=_unix_ns(self.created()),
            ended_unix_ns=_unix_ns(status.completion_time),
        )

    def created(self) -> datetime | None:
        """The time at which it was made."""
        try:
            return datetime.fromisoformat(str(self._metadata.get("creationTimestamp")))
        except ValueError:
            return None

    @property
    def has_succeeded(self) -> bool:
        """Tells whether it has ended well."""
        succeeded = self.status.condition("Succeeded")
        return succeeded is not None and succeeded.status == "True"

    @property
    def is_of_stacks(self) -> bool:
        """Tells whether it asks for stacks, and so counts no ranks."""
        return "capture" in (self.document.get("spec") or {})

    def exit_code(self) -> ExitCode:
        """The exit code of its end, for a script."""
        if self.is_of_stacks:
            return ExitCode.DONE if self.has_succeeded else ExitCode.REFUSED
        counts = self.counts
        return judge_end(counts.targeted or 0, counts.uploaded or 0, succeeded=self.has_succeeded, reason=self.reason())

    def troubles(self) -> Sequence[str]:
        """The troubles, a line each: conditions that do not hold, and why ranks have no trace."""
        conditions = [
            f"{condition.type}: {condition.reason}: {condition.message}".rstrip(": ")
            for condition in self.status.conditions
            if condition.status == "False" and condition.type not in _SUMMARIES and condition.message
        ]
        return [*conditions, *map(_describe_failure, self.status.failures)]


# They say again how the whole stands, to kubectl and to tools that know no ProfileRequest.
_SUMMARIES: Final = ("Succeeded", "Ready", "Stalled")


def _describe_failure(failure: FailedRanks) -> str:
    numbers = ", ".join(map(str, failure.first_ranks)) + (" …" if failure.ranks > len(failure.first_ranks) else "")
    which = f"rank {numbers}" if failure.ranks == 1 else f"{failure.ranks} ranks ({numbers})"
    return f"{which}: {failure.reason}" + (f": {failure.message}" if failure.message else "")


def headline_lines(headline: Headline | None) -> list[str]:
    """The report in a few lines, as far as the status has it."""
    if headline is None:
        return []
    lines = []
    if headline.busy_permille is not None:
        lines.append(f"busy {headline.busy_permille / 10:.1f} % of the window")
    if headline.exposed_communication_permille is not None:
        lines.append(f"exposed communication {headline.exposed_communication_permille / 10:.1f} % of the window")
    if headline.straggler:
        lines.append(f"straggler: {headline.straggler}")
    if headline.top_finding:
        lines.append(headline.top_finding)
    return lines


def _unix_ns(moment: datetime | None) -> int:
    return int(moment.timestamp()) * 10**9 if moment else 0
