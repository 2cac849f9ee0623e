"""The course of each iteration: of which class most of each moment was."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.rank.measures.breakdown import measure_before, measure_iterations
from fleetprof_analyzer.rank.measures.course import COURSE_CLASSES, bound_moments, describe_course
from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.rank.window.unrecorded import NOTHING, Lost
from fleetprof_analyzer.trace.classes import WorkClass
from fleetprof_api.report.report import Iteration
from harness.timelines.timeline_files import make_trace

WORK = (
    (WorkClass.COMPUTE, 0, 40),
    (WorkClass.COMMUNICATION, 30, 60),
    (WorkClass.MEMORY, 60, 70),
    (WorkClass.COMPUTE, 150, 154),
    (WorkClass.COMPUTE, 160, 166),
    (WorkClass.COMPUTE, 190, 200),
)
ITERATIONS = [Iteration(index=n, start_ns=100 * n, duration_ns=100) for n in range(2)]
SHORT = {name: name[0] for name in COURSE_CLASSES} | {"communication_exposed": "x", "communication_overlapped": "o"}


def make_work(device: str) -> DeviceWork:
    trace = make_trace([(0, start, end - start, 0) for _, start, end in WORK])
    return DeviceWork(device, trace.rows, np.array([cls for cls, _, _ in WORK], np.int8))


@pytest.fixture(autouse=True)
def few_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten moments of 10 ns for each of the two iterations."""
    monkeypatch.setattr("fleetprof_analyzer.rank.measures.course.MOST_MOMENTS", 20)


@pytest.mark.parametrize(
    ("devices", "labels", "expected"),
    [
        (1, [], "cccoxxmiii" "iiiiiiciic"),
        (2, [], "cccoxxmiii" "iiiiiiciic"),
        (1, [[], [(100, 150, "data_loading"), (150, 200, "forward")]], "cccoxxmiii" "dddddiciic"),
    ],
)  # fmt: skip
def test_a_moment_is_of_the_class_that_took_most_of_it(devices: int, labels: list[list[Label]], expected: str) -> None:
    works = [make_work(str(number)) for number in range(devices)]
    bounds = bound_moments(ITERATIONS)
    course = describe_course(measure_before(works, bounds), bounds, devices, labels)
    assert "".join(SHORT[COURSE_CLASSES[each]] for each in course) == expected


def test_a_moment_whose_work_is_not_in_the_trace_is_not_idle() -> None:
    lost = NOTHING.add(np.array([155, 180]), np.array([160, 190]), Lost.WORK_MISSING, make_work("0").busy())
    bounds = bound_moments(ITERATIONS)
    works = [replace(make_work("0"), unrecorded=lost)]
    course = describe_course(measure_before(works, bounds), bounds, 1, [])
    assert "".join(SHORT[COURSE_CLASSES[each]] for each in course) == "cccoxxmiiiiiiiiuciuc"


def test_moments_add_up_to_the_iteration() -> None:
    before = measure_before([make_work("0")], bound_moments(ITERATIONS))
    first, second = (one.time_ns for one in measure_iterations(before, 1, ITERATIONS))
    assert first
    assert second
    assert (first.compute, first.overlapped_communication, first.exposed_communication) == (40, 10, 20)
    assert (first.exposed_memory, first.idle, second.compute, second.idle) == (10, 30, 20, 80)


def test_without_iterations_there_is_none() -> None:
    bounds = bound_moments([])
    assert describe_course(measure_before([make_work("0")], bounds), bounds, 1, []) == b""
