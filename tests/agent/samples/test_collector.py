"""Marks of the garbage collector: only while they are wanted, only long ones, told once."""

import gc

import pytest
from fleetprof_agent.samples.collector import LEAST_NS, MOST_KEPT, CollectorMarks

MS = 1_000_000


class Clock:
    """Ticks as told."""

    def __init__(self, *times: int) -> None:
        self._times = list(times)

    def __call__(self) -> int:
        return self._times.pop(0)


def heard(marks: CollectorMarks) -> list[dict[str, list[int]]]:
    sent: list[dict[str, list[int]]] = []

    def send(kind: str, **fields: list[int]) -> bool:
        assert kind == "collections"
        sent.append(fields)
        return True

    assert marks.flush(send)
    assert marks.flush(send)
    return sent


def test_long_runs_are_told_once() -> None:
    marks = CollectorMarks(Clock(10 * MS, 10 * MS + LEAST_NS - 1, 20 * MS, 60 * MS))
    for phase in ("start", "stop", "start", "stop"):
        marks._hear(phase, {})
    assert heard(marks) == [{"start_unix_ns": [20 * MS], "duration_ns": [40 * MS]}]


def test_a_run_that_had_begun_before_is_not_told() -> None:
    marks = CollectorMarks(Clock(20 * MS))
    marks._hear("stop", {})
    assert heard(marks) == []


def test_what_could_not_be_sent_is_sent_later() -> None:
    marks = CollectorMarks(Clock(0 + MS, 5 * MS))
    marks._hear("start", {})
    marks._hear("stop", {})
    assert not marks.flush(lambda kind, **fields: False)
    assert len(heard(marks)) == 1


def test_no_more_are_kept_than_fit_in_a_datagram() -> None:
    times = [MS + number * 10 * MS + half * 5 * MS for number in range(MOST_KEPT + 9) for half in (0, 1)]
    marks = CollectorMarks(Clock(*times))
    for _ in range(MOST_KEPT + 9):
        marks._hear("start", {})
        marks._hear("stop", {})
    assert [len(one["start_unix_ns"]) for one in heard(marks)] == [MOST_KEPT]


def test_the_collector_is_heard_between_begin_and_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetprof_agent.samples.collector.LEAST_NS", 0)
    marks = CollectorMarks()
    gc.collect()
    marks.begin()
    marks.begin()
    gc.collect()
    marks.end()
    marks.end()
    gc.collect()
    ((told,),) = [heard(marks)]
    assert 1 <= len(told["start_unix_ns"]) <= 3  # an automatic one may come in between
    assert all(getattr(callback, "__self__", None) is not marks for callback in gc.callbacks)


def test_a_clock_that_fails_harms_nobody() -> None:
    marks = CollectorMarks(Clock())
    marks._hear("start", {})
    assert heard(marks) == []
