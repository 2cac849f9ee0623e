"""When a cron expression last came due: Debian's cron, as cronsim reads it, in a time zone of the tz database.

Guarantees: pure; an expression or a zone that is none is an `InvalidSchedule`, which says what is wrong.
"""

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from fleetprof_api.policy import ScheduleTrigger

LATE_NS: Final = 300 * 10**9
"""So late a time is still met: what came due while no operator ran is not made up for."""


class InvalidSchedule(ValueError):
    """The expression never comes due, or is none; the message says what to do."""


def find_due(schedule: ScheduleTrigger, now_unix_ns: int) -> int | None:
    """The latest time (Unix seconds) at which it came due, unless that is too long ago. Raises InvalidSchedule."""
    try:
        zone = ZoneInfo(schedule.time_zone)
    except (OSError, ValueError, KeyError):
        raise InvalidSchedule(
            f"schedule.timeZone {schedule.time_zone!r} is no zone of the tz database; write one such as Europe/Berlin"
        ) from None
    now = datetime.fromtimestamp(now_unix_ns // 10**9, UTC).astimezone(zone)
    try:
        # It looks for times before the one given, and a time that is now has come.
        last = next(CronSim(schedule.cron, datetime.fromtimestamp(now.timestamp() + 1, zone), reverse=True))
    except (CronSimError, StopIteration):
        raise InvalidSchedule(
            f"schedule.cron {schedule.cron!r} is no expression of cron that ever comes due; write one such as 0 3 * * *"
        ) from None
    due = int(last.timestamp())
    return due if now_unix_ns - due * 10**9 <= LATE_NS else None
