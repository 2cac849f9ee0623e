"""What a policy has done: its captures and what it left out, as its status has them. The budget is reckoned from here.

Guarantees: bounded; what is written is what is read again by the next operator, so that a restart neither forgets nor
repeats; entries leave when neither the budget nor a trigger needs them any more.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from fleetprof_api.policy import (
    DAY_S,
    MOST_CAPTURES,
    MOST_SUPPRESSIONS,
    Mode,
    PolicyCapture,
    PolicyStatus,
    PolicySuppression,
    Suppression,
)
from fleetprof_api.request.fields import longest
from pydantic import ValidationError

from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.profilerequests.status import format_time

DAY_NS: Final = DAY_S * 10**9
_CAUSE: Final = longest(PolicyCapture, "cause")
_OCCASION: Final = longest(PolicyCapture, "occasion")
_HEADLINE: Final = longest(PolicyCapture, "headline")
_MESSAGE: Final = longest(PolicySuppression, "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCapture:
    """One capture of a policy, made or (in a dry run) only recorded. A time of 0 has not come."""

    request: str
    workload: str
    trigger: str
    occasion: str
    cause: str
    mode: Mode
    fired_unix_ns: int
    trace_bytes: int
    created_unix_ns: int = 0
    completed_unix_ns: int = 0
    notified_unix_ns: int = 0
    result: str = ""
    headline: str = ""
    report_url: str = ""

    @property
    def is_over(self) -> bool:
        """Nothing of it runs any more."""
        return self.mode is Mode.DRY_RUN or self.completed_unix_ns > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Triggers that made no capture, for one reason."""

    message: str
    count: int
    first_unix_ns: int
    last_unix_ns: int


@dataclass(slots=True)
class PolicyLog:
    """`captures` by name of their request, the oldest first; `left` by job, trigger and reason, the latest last."""

    captures: dict[str, LoggedCapture]
    left: dict[tuple[str, str, Suppression], Left]
    fired: int = 0
    captured: int = 0
    suppressed: int = 0
    last_fired_unix_ns: int = 0

    def note_capture(self, capture: LoggedCapture) -> None:
        """A trigger makes a capture."""
        self.captures[capture.request] = capture
        self.captured += 1
        self._note_fired(capture.fired_unix_ns)

    def change(self, request: str, **changes: object) -> LoggedCapture:
        """A capture goes on. Raises KeyError when it is not known."""
        changed = replace(self.captures[request], **changes)  # type: ignore[arg-type]
        self.captures[request] = changed
        return changed

    def note_left(self, workload: str, trigger: str, reason: Suppression, message: str, now_unix_ns: int) -> bool:
        """A trigger makes none. True when that is news."""
        key = (workload, trigger, reason)
        known = self.left.pop(key, None)
        first = known.first_unix_ns if known else now_unix_ns
        count = known.count + 1 if known else 1
        self.left[key] = Left(message=message, count=count, first_unix_ns=first, last_unix_ns=now_unix_ns)
        while len(self.left) > MOST_SUPPRESSIONS:
            del self.left[next(iter(self.left))]
        self.suppressed += 1
        self._note_fired(now_unix_ns)
        return known is None

    def forget(self, now_unix_ns: int, is_remembered: Callable[[LoggedCapture], bool]) -> None:
        """Drops captures older than a day that nobody needs; `is_remembered` tells those that a trigger does."""
        for name, capture in list(self.captures.items()):
            if now_unix_ns - capture.fired_unix_ns > DAY_NS and capture.is_over and not is_remembered(capture):
                del self.captures[name]
        for name, capture in list(self.captures.items()):
            if len(self.captures) < MOST_CAPTURES:
                return
            if now_unix_ns - capture.fired_unix_ns > DAY_NS:
                del self.captures[name]

    def _note_fired(self, now_unix_ns: int) -> None:
        self.fired += 1
        self.last_fired_unix_ns = now_unix_ns


def read_log(status: Json) -> PolicyLog:
    """The log of a policy's status; empty where there is none, or a status that is not ours."""
    try:
        read = PolicyStatus.model_validate(status)
    except ValidationError:
        return PolicyLog({}, {})
    return PolicyLog(
        captures={c.request: _read_capture(c) for c in read.captures},
        left={(s.workload, s.trigger, s.reason): _read_left(s) for s in read.suppressions},
        fired=read.fired or 0,
        captured=read.captured or 0,
        suppressed=read.suppressed or 0,
        last_fired_unix_ns=_read_time(read.last_fired_time),
    )


def write_log(log: PolicyLog) -> Json:
    """The part of a policy's status that is its log."""
    written: Json = {
        "fired": log.fired,
        "captured": log.captured,
        "suppressed": log.suppressed,
        "captures": [_write_capture(capture) for capture in log.captures.values()],
        "suppressions": [
            {
                "workload": workload,
                "trigger": trigger,
                "reason": reason.value,
                "message": left.message[:_MESSAGE],
                "count": left.count,
                "firstTime": format_time(left.first_unix_ns),
                "lastTime": format_time(left.last_unix_ns),
            }
            for (workload, trigger, reason), left in log.left.items()
        ],
    }
    if log.last_fired_unix_ns:
        written["lastFiredTime"] = format_time(log.last_fired_unix_ns)
    return written


def _write_capture(capture: LoggedCapture) -> Json:
    written: Json = {
        "request": capture.request,
        "workload": capture.workload,
        "trigger": capture.trigger,
        "occasion": capture.occasion[:_OCCASION],
        "cause": capture.cause[:_CAUSE],
        "mode": capture.mode.value,
        "firedTime": format_time(capture.fired_unix_ns),
        "traceBytes": capture.trace_bytes,
    }
    if capture.created_unix_ns:
        written["createdTime"] = format_time(capture.created_unix_ns)
    if capture.completed_unix_ns:
        written["completionTime"] = format_time(capture.completed_unix_ns)
    if capture.notified_unix_ns:
        written["notifiedTime"] = format_time(capture.notified_unix_ns)
    for name, value in (
        ("result", capture.result),
        ("headline", capture.headline[:_HEADLINE]),
        ("reportURL", capture.report_url),
    ):
        if value:
            written[name] = value
    return written


def _read_capture(read: PolicyCapture) -> LoggedCapture:
    return LoggedCapture(
        request=read.request,
        workload=read.workload,
        trigger=read.trigger,
        occasion=read.occasion,
        cause=read.cause,
        mode=read.mode,
        fired_unix_ns=_read_time(read.fired_time),
        trace_bytes=read.trace_bytes,
        created_unix_ns=_read_time(read.created_time),
        completed_unix_ns=_read_time(read.completion_time),
        notified_unix_ns=_read_time(read.notified_time),
        result=read.result or "",
        headline=read.headline or "",
        report_url=read.report_url or "",
    )


def _read_left(read: PolicySuppression) -> Left:
    return Left(
        message=read.message,
        count=read.count,
        first_unix_ns=_read_time(read.first_time),
        last_unix_ns=_read_time(read.last_time),
    )


def _read_time(time: object) -> int:
    return int(time.timestamp()) * 10**9 if isinstance(time, datetime) else 0
