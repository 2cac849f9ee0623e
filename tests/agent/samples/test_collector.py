"""Marks of the garbage collector: only while they are wanted, only long ones, told once."""

import gc
import inspect
import threading

import pytest
from fleetprof_agent.samples.collector import LEAST_NS, LEAST_WITH_STACK_NS, MOST_KEPT, CollectorMarks
from fleetprof_agent.samples.frames import find_line

MS = 1_000_000
HERE = threading.get_ident()


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
    marks = CollectorMarks(HERE, Clock(10 * MS, 10 * MS + LEAST_NS - 1, 20 * MS, 60 * MS))
    for phase in ("start", "stop", "start", "stop"):
        marks.hear(phase, {})
    assert heard(marks) == [{"start_unix_ns": [20 * MS], "duration_ns": [40 * MS]}]


def test_a_run_that_had_begun_before_is_not_told() -> None:
    marks = CollectorMarks(HERE, Clock(20 * MS))
    marks.hear("stop", {})
    assert heard(marks) == []


def test_what_could_not_be_sent_is_sent_later() -> None:
    marks = CollectorMarks(HERE, Clock(0 + MS, 5 * MS))
    marks.hear("start", {})
    marks.hear("stop", {})
    assert not marks.flush(lambda kind, **fields: False)
    assert len(heard(marks)) == 1


def test_no_more_are_kept_than_fit_in_a_datagram() -> None:
    times = [MS + number * 10 * MS + half * 5 * MS for number in range(MOST_KEPT + 9) for half in (0, 1)]
    marks = CollectorMarks(HERE, Clock(*times))
    for _ in range(MOST_KEPT + 9):
        marks.hear("start", {})
        marks.hear("stop", {})
    assert [len(one["start_unix_ns"]) for one in heard(marks)] == [MOST_KEPT]


def test_the_collector_is_heard_between_begin_and_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetprof_agent.samples.collector.LEAST_NS", 0)
    marks = CollectorMarks(HERE)
    gc.collect()
    marks.begin()
    marks.begin()
    gc.collect()
    marks.end()
    marks.end()
    gc.collect()
    ((collections,),) = [heard(marks)]
    assert 1 <= len(collections["start_unix_ns"]) <= 3  # an automatic one may come in between
    assert all(getattr(callback, "__self__", None) is not marks for callback in gc.callbacks)


def test_a_clock_that_fails_harms_nobody() -> None:
    marks = CollectorMarks(HERE, Clock())
    marks.hear("start", {})
    assert heard(marks) == []


class Ring:
    """Refers to itself: the collector has to look for it."""

    def __init__(self) -> None:
        self.ring = self


def collect_long(marks: CollectorMarks) -> int:
    """Hears a collection that takes long; the line that asked for it."""
    kept = [Ring() for _ in range(200_000)]
    marks.begin()
    gc.collect()
    called_at = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    marks.end()
    del kept
    return called_at


def test_a_long_run_is_where_the_thread_asked_for_it() -> None:
    marks = CollectorMarks(HERE)
    called_at = collect_long(marks)
    ((_, stack),) = [one for one in marks.take_stacks() if any(code is collect_long.__code__ for code, _ in one[1])][:1]
    lines = [find_line(code, instruction) for code, instruction in stack if code is collect_long.__code__]
    assert lines == [called_at]
    assert list(marks.take_stacks()) == []


@pytest.mark.parametrize(("lasted_ns", "trains", "stacks"), [
    (LEAST_WITH_STACK_NS, True, 1),
    (LEAST_WITH_STACK_NS - 1, True, 0),
    (LEAST_WITH_STACK_NS, False, 0),  # another thread collects
])  # fmt: skip
def test_which_runs_have_a_stack(lasted_ns: int, trains: bool, stacks: int) -> None:
    marks = CollectorMarks(HERE if trains else HERE + 1, Clock(10 * MS, 10 * MS + lasted_ns))
    marks.hear("start", {})
    marks.hear("stop", {})
    assert [end for end, _ in marks.take_stacks()] == [10 * MS + lasted_ns] * stacks
