"""The log of a policy: its captures and what it left out, as its status has them. The budget is reckoned from here.

Guarantees: bounded; what is written is what is read again by the next operator, so that a restart neither forgets nor
repeats; entries leave when neither the budget nor a trigger needs them any more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleetprof_api.policy import (
    DAY_S,
    MOST_CAPTURES,
    MOST_SUPPRESSIONS,
    PolicyCapture,
    PolicyStatus,
    PolicySuppression,
    Suppression,
)
from fleetprof_api.request.fields import longest
from pydantic import ValidationError

from fleetprof_operator.kubernetes.cluster import Json

DAY_NS: Final = DAY_S * 10**9
_MESSAGE: Final = longest(PolicySuppression, "message")


@dataclass(slots=True)
class PolicyLog:
    """`captures` by name of their request, the oldest first; `left` by job, trigger and reason, the latest last."""

    captures: dict[str, PolicyCapture]
    left: dict[tuple[str, str, Suppression], PolicySuppression]
    fired: int = 0
    captured: int = 0
    suppressed: int = 0
    last_fired_time: datetime | None = None

    def note_capture(self, capture: PolicyCapture) -> None:
        """A trigger makes a capture."""
        self.captures[capture.request] = capture
        self.captured += 1
        self._note_fired(capture.fired_time)

    def change(self, request: str, **changes: object) -> PolicyCapture:
        """A capture goes on. Raises KeyError when it is not known."""
        changed = self.captures[request].model_copy(update=changes)
        self.captures[request] = changed
        return changed

    def note_left(self, workload: str, trigger: str, reason: Suppression, message: str, now_unix_ns: int) -> bool:
        """A trigger makes none. True when that is news."""
        key = (workload, trigger, reason)
        known = self.left.pop(key, None)
        now = to_time(now_unix_ns)
        self.left[key] = PolicySuppression.model_construct(
            workload=workload,
            trigger=trigger,
            reason=reason,
            message=message[:_MESSAGE],
            count=known.count + 1 if known else 1,
            first_time=known.first_time if known else now,
            last_time=now,
        )
        while len(self.left) > MOST_SUPPRESSIONS:
            del self.left[next(iter(self.left))]
        self.suppressed += 1
        self._note_fired(now)
        return known is None

    def forget(self, now_unix_ns: int, is_remembered: Callable[[PolicyCapture], bool]) -> None:
        """Drops captures older than a day that nobody needs; `is_remembered` tells those that a trigger does."""
        for name, capture in list(self.captures.items()):
            if now_unix_ns - capture.fired_unix_ns > DAY_NS and capture.is_over and not is_remembered(capture):
                del self.captures[name]
        for name, capture in list(self.captures.items()):
            if len(self.captures) < MOST_CAPTURES:
                return
            if now_unix_ns - capture.fired_unix_ns > DAY_NS:
                del self.captures[name]

    def _note_fired(self, now: datetime) -> None:
        self.fired += 1
        self.last_fired_time = now


def read_log(status: Json) -> PolicyLog:
    """The log of a policy's status; empty where there is none, or a status that is not ours."""
    try:
        read = PolicyStatus.model_validate(status)
    except ValidationError:
        return PolicyLog({}, {})
    return PolicyLog(
        captures={c.request: c for c in read.captures},
        left={(s.workload, s.trigger, s.reason): s for s in read.suppressions},
        fired=read.fired or 0,
        captured=read.captured or 0,
        suppressed=read.suppressed or 0,
        last_fired_time=read.last_fired_time,
    )


def write_log(log: PolicyLog) -> Json:
    """The part of a policy's status that is its log."""
    return PolicyStatus.model_construct(
        fired=log.fired,
        captured=log.captured,
        suppressed=log.suppressed,
        last_fired_time=log.last_fired_time,
        captures=list(log.captures.values()),
        suppressions=list(log.left.values()),
    ).model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"conditions"})


def to_time(unix_ns: int) -> datetime:
    """A time as a status has it, in whole seconds."""
    return datetime.fromtimestamp(unix_ns // 10**9, UTC)
