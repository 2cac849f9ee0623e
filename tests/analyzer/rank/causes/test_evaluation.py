"""A model that runs without a backward pass now and then, beside what only looks like that."""

import pytest
from fleetprof_api.report.rank_tables import KnownCause
from fleetprof_api.samples import CodePlace
from harness.traces.written_loop import TRAIN, WrittenLoop

MS = 1_000_000
SCORE = CodePlace(file="/home/me/train.py", function="score", line=70)


def found(
    in_iterations: range | tuple[int, ...],
    name: str = "aten::linear",
    count: int = 4,
    first_ms: float = 1,
    *,
    gpu: bool = False,
) -> list[KnownCause]:
    """`count` operators of 0.5 ms, each begins 1 ms after the one before."""
    loop = WrittenLoop(gpu=gpu)
    for number in in_iterations:
        for index in range(count):
            loop.add(name, 10 * number + first_ms + index, 0.5)
            loop.look(10 * number + first_ms + index + 0.4, SCORE, TRAIN)
    loop.look_all_along()
    return [one for one in loop.causes() if one.cause == "evaluation"]


@pytest.mark.parametrize("gpu", [False, True])
def test_its_layers_run_alone(gpu: bool) -> None:
    (one,) = found((3, 9), gpu=gpu)
    assert (one.iterations, one.time_ns, one.longest_ns) == (2, 2 * 3.5 * MS, 3.5 * MS)
    assert one.place is not None
    assert one.place.function == "score"


def test_one_sample_between_its_operators_tells_whose_call_it_is() -> None:
    loop = WrittenLoop()
    for number in (3, 9):
        for index in range(4):
            loop.add("aten::linear", 10 * number + 1 + index, 0.5)
    loop.look(32.5, SCORE, TRAIN)
    loop.look_all_along(5)
    (one,) = [one for one in loop.causes() if one.cause == "evaluation"]
    assert one.place is not None
    assert (one.place.function, one.place.samples) == ("score", 1)


def test_beside_what_trains_they_count_by_themselves() -> None:
    (one,) = found((3, 9), first_ms=4.2)  # the third lies inside the one that trains
    assert one.time_ns == 2 * 3 * 0.5 * MS


@pytest.mark.parametrize(("in_iterations", "name", "count"), [
    pytest.param(range(12), "aten::linear", 4, id="a teacher beside the model"),
    pytest.param((3, 9), "aten::conv2d", 4, id="another model"),
    pytest.param((3, 9), "aten::randn", 4, id="no layer"),
    pytest.param((3, 9), "aten::linear", 2, id="two operators"),
])  # fmt: skip
def test_what_is_none(in_iterations: range | tuple[int, ...], name: str, count: int) -> None:
    assert not found(in_iterations, name, count)


def stretch(loop: WrittenLoop, number: int, longer_ms: float) -> None:
    """Makes an iteration longer behind the operators that it begins with."""
    middle, iteration = 1000 * (10 * number + 5), f"ProfilerStep#{number}"
    for event in loop.events:
        event["ts"] += 1000 * longer_ms * (event["ts"] > middle)
        event["dur"] += 1000 * longer_ms * (event["name"] == iteration)


@pytest.mark.parametrize(("longer_ms", "permille"), [
    pytest.param(0, 1000 * 3.5 // 60, id="its layers alone"),
    pytest.param(5, 1000 * 5 // 65, id="metrics and prints after its layers"),
    pytest.param(20, 1000 * 5.25 // 80, id="more than half of its layers, as a checkpoint beside it"),
])  # fmt: skip
def test_what_its_iterations_take_longer_is_its_own_up_to_half_of_its_layers(longer_ms: float, permille: int) -> None:
    loop = WrittenLoop(has_samples=False)
    for number in (9, 3):
        for index in range(4):
            loop.add("aten::linear", 10 * number + 1 + index, 0.5)
        stretch(loop, number, longer_ms)
    (one,) = [one for one in loop.causes() if one.cause == "evaluation"]
    assert (one.time_ns, one.gain_permille) == (2 * 3.5 * MS, permille)
