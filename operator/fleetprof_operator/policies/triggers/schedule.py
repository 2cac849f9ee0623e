"""A cron expression has come due: Debian's cron, as cronsim reads it, in a time zone of the tz database."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from fleetprof_api.policy import ScheduleTrigger

from fleetprof_operator.policies.triggers.watch import Detection, InvalidTrigger, JobMoment, Watch

LATE_S: Final = 300
"""So late a time is still met: what came due while no operator ran is not made up for."""
_MINUTE_S: Final = 60


class ScheduleWatch(Watch[ScheduleTrigger]):
    """Fires for each job that ran when the schedule came due."""

    repeats_after_restart: ClassVar[bool] = True

    def __init__(self, name: str, details: ScheduleTrigger) -> None:
        super().__init__(name, details)
        self._answered_unix_s = 0
        find_due(details, 0)

    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """See Watch."""
        due_unix_s = find_due(self.details, moment.now_unix_ns)
        if due_unix_s is None or due_unix_s == self._answered_unix_s:
            return
        self._answered_unix_s = due_unix_s
        if moment.figures.began_unix_ns <= due_unix_s * 10**9:
            yield Detection(self.name, f"at-{due_unix_s}", f"{self.details.cron} came due")


def find_due(schedule: ScheduleTrigger, now_unix_ns: int) -> int | None:
    """The latest time (Unix seconds) at which it came due, unless that is too long ago. Raises InvalidTrigger."""
    now_unix_s = now_unix_ns // 10**9
    due_unix_s = _find_last(schedule.cron, schedule.time_zone, now_unix_s // _MINUTE_S)
    return due_unix_s if now_unix_s - due_unix_s <= LATE_S else None


@lru_cache(maxsize=4096)  # every job of a policy asks for the same minute
def _find_last(cron: str, time_zone: str, minute: int) -> int:
    try:
        zone = ZoneInfo(time_zone)
    except (OSError, ValueError, KeyError):
        raise InvalidTrigger(
            f"schedule.timeZone {time_zone!r} is no zone of the tz database; write one such as Europe/Berlin"
        ) from None
    now = datetime.fromtimestamp(minute * _MINUTE_S, UTC).astimezone(zone)
    try:
        # It looks for times before the one given, and a time that is now has come.
        last = next(CronSim(cron, datetime.fromtimestamp(now.timestamp() + 1, zone), reverse=True))
    except (CronSimError, StopIteration):
        raise InvalidTrigger(
            f"schedule.cron {cron!r} is no expression of cron that ever comes due; write one such as 0 3 * * *"
        ) from None
    return int(last.timestamp())
