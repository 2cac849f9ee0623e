"""The view of a request's ledger for all but its book: read it.

Guarantees: nothing here can be assigned to, so the type checker finds a second writer; `Ledger` itself fits.
"""

from collections.abc import Sequence
from typing import Protocol

from fleetprof_api.ledger import CanaryVerdict, Canceller, Condition, LedgerEntry, RecordingEstimate


class CanaryView(Protocol):
    """The canary of a ledger, to be read."""

    @property
    def verdict(self) -> CanaryVerdict:
        """Its verdict; `Verdict.NONE` until it has ended."""

    @property
    def message(self) -> str:
        """The verdict for people."""

    @property
    def tries(self) -> int:
        """The number of times that a rank was ordered to record first."""

    @property
    def entry(self) -> LedgerEntry | None:
        """The line of the rank that recorded first; None where none was asked."""


class LedgerView(Protocol):
    """A ledger to be read. `fleetprof_api.ledger.Ledger` says what each field means."""

    @property
    def uid(self) -> str:
        """The request's id."""

    @property
    def name(self) -> str:
        """The request's name."""

    @property
    def namespace(self) -> str:
        """The request's namespace."""

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all pods share."""

    @property
    def requester(self) -> str:
        """The one who asked, as far as somebody vouches for the name."""

    @property
    def start_mode(self) -> str:
        """`step`, `time`, or empty while nothing is armed."""

    @property
    def first_step(self) -> int | None:
        """The step that the window begins with, in mode `step`."""

    @property
    def deliver_until_unix_ns(self) -> int:
        """Until when the order may be fetched."""

    @property
    def submitted_unix_ns(self) -> int:
        """The time at which the request came."""

    @property
    def queued_ns(self) -> int:
        """The time that it waited for its turn, up to `queued_since_unix_ns`."""

    @property
    def queued_since_unix_ns(self) -> int:
        """Since when it waits for its turn; 0: it does not."""

    @property
    def armed_unix_ns(self) -> int:
        """The time at which the ranks were asked."""

    @property
    def estimate(self) -> RecordingEstimate | None:
        """The cost that the ranks were told."""

    @property
    def plans(self) -> int:
        """The number of starts that were agreed on."""

    @property
    def cancelled_unix_ns(self) -> int:
        """The time at which a cancel came; 0: it did not."""

    @property
    def cancelled_by(self) -> Canceller:
        """The one who canceled, where a cancel came."""

    @property
    def completed_unix_ns(self) -> int:
        """The time at which the request ended."""

    @property
    def outcome(self) -> str:
        """The reason of the Succeeded condition; empty until the end."""

    @property
    def message(self) -> str:
        """The outcome for people."""

    @property
    def conditions(self) -> Sequence[Condition]:
        """One of each type at most, in their order."""

    @property
    def entries(self) -> Sequence[LedgerEntry]:
        """The ranks' lines. A line is never changed, only replaced by another."""

    @property
    def canary(self) -> CanaryView | None:
        """The rank that recorded first; None: not decided yet."""
