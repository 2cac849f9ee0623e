"""The times at which a schedule comes due."""

from datetime import datetime

import pytest
from fleetprof_api.policy import ScheduleTrigger
from fleetprof_operator.policies.triggers.figures import Job, JobFigures
from fleetprof_operator.policies.triggers.schedule import ScheduleWatch, find_due
from fleetprof_operator.policies.triggers.watch import InvalidTrigger, JobMoment


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


@pytest.mark.parametrize(
    ("cron", "zone", "now", "due"),
    [
        ("0 3 * * *", "Etc/UTC", "2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z"),
        ("0 3 * * *", "Etc/UTC", "2026-11-21T03:04:59Z", "2026-11-21T03:00:00Z"),
        ("0 3 * * *", "Etc/UTC", "2026-11-21T03:05:01Z", None),
        ("0 3 * * *", "Etc/UTC", "2026-11-21T02:59:59Z", None),
        ("0 3 * * *", "Europe/Berlin", "2026-11-21T02:00:30Z", "2026-11-21T02:00:00Z"),
        ("*/15 * * * 1-5", "Etc/UTC", "2026-11-23T10:16:00Z", "2026-11-23T10:15:00Z"),
        # 02:30 is not there on the night when clocks go forward; Debian's cron runs it as soon as it would be over.
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:01:00Z", "2026-03-29T01:00:00Z"),
    ],
)
def test_a_schedule_is_due_for_five_minutes(cron: str, zone: str, now: str, due: str | None) -> None:
    schedule = ScheduleTrigger(cron=cron, time_zone=zone)
    assert find_due(schedule, at(now) * 10**9) == (at(due) if due else None)


@pytest.mark.parametrize(("began", "fires"), [("2026-11-21T02:59:59Z", True), ("2026-11-21T03:00:01Z", False)])
def test_it_fires_once_for_a_job_that_ran_when_it_came_due(began: str, fires: bool) -> None:
    watch = ScheduleWatch("nightly", ScheduleTrigger(cron="0 3 * * *"))
    figures = JobFigures(job=Job("team", "batch/v1", "Job", "llama"), ranks=1, began_unix_ns=at(began) * 10**9)
    moments = [JobMoment(figures, at(f"2026-11-21T{now}Z") * 10**9) for now in ("03:00:30", "03:00:35")]
    detections = [detection for moment in moments for detection in watch.observe(moment)]
    assert [d.occasion for d in detections] == [f"at-{at('2026-11-21T03:00:00Z')}"] * fires


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("0 25 * * *", "Etc/UTC", "schedule.cron '0 25 * * *' is no expression of cron"),
        ("0 0 31 2 *", "Etc/UTC", "schedule.cron '0 0 31 2 *' is no expression of cron that ever comes due"),
        ("0 3 * * *", "Mars/Olympus", "schedule.timeZone 'Mars/Olympus' is no zone"),
    ],
)
def test_what_never_comes_due_is_refused(cron: str, zone: str, words: str) -> None:
    with pytest.raises(InvalidTrigger, match=words.replace("*", r"\*")):
        find_due(ScheduleTrigger(cron=cron, time_zone=zone), 10**18)
