"""Time and memory at a batch size by captures at others: a planted line is found, or it is said."""

import math

import numpy as np
import pytest
from fleetprof_analyzer.whatif.batch_sizes import SizedCapture, predict_size, recommend

MS = 1e6


def captures(*sizes: float, noise: float = 0.0, bend: float = 0.0, seed: int = 0) -> list[SizedCapture]:
    """An iteration of 2 ms a sample and 30 ms besides, and 50 MB a sample and 1 GB besides."""
    source = np.random.default_rng(seed)
    return [
        SizedCapture(
            size,
            [(2 * size + 30 + bend * size**2) * MS * float(source.lognormal(0, noise)) for _ in range(20)],
            5e7 * size + 1e9,
        )
        for size in sizes
    ]


@pytest.mark.parametrize("sizes", [(8, 16), (8, 32), (4, 8, 16)])
@pytest.mark.parametrize("size", [8, 12, 24, 32])
def test_a_line_goes_on(sizes: tuple[float, ...], size: int) -> None:
    answer = predict_size(captures(*sizes, noise=0.02), size, [f"batch_size={size}"])
    assert answer.iteration_ns is not None
    assert answer.memory_bytes is not None
    truth_ns = (2 * size + 30) * MS
    assert answer.iteration_ns.value == pytest.approx(truth_ns, rel=0.037)
    assert answer.iteration_ns.low <= truth_ns <= answer.iteration_ns.high
    assert answer.memory_bytes.value == pytest.approx(5e7 * size + 1e9, rel=1e-6)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    inside = 0
    for seed in range(200):
        answer = predict_size(captures(8, 16, noise=0.05, seed=seed), 16, [])
        assert answer.iteration_ns is not None
        inside += answer.iteration_ns.low <= 62 * MS <= answer.iteration_ns.high
    assert 0.9 <= inside / 200 <= 0.99


def test_the_interval_grows_away_from_what_was_seen() -> None:
    widths = []
    for size in (8, 12, 24, 32):
        value = predict_size(captures(8, 16, noise=0.01), size, []).iteration_ns
        assert value is not None
        widths.append((value.high - value.low) / value.value)
    assert widths == sorted(widths)


REFUSED = [
    ((8,), 16, "two sizes or more"),
    ((8, 8), 16, "two sizes or more"),
    ((8, 16), 33, "far from the sizes that were seen"),
    ((8, 16), 3, "far from the sizes that were seen"),
]


@pytest.mark.parametrize(("sizes", "size", "reason"), REFUSED)
def test_what_two_sizes_do_not_tell_is_refused(sizes: tuple[float, ...], size: int, reason: str) -> None:
    answer = predict_size(captures(*sizes), size, [])
    assert answer.iteration_ns is None
    assert reason in answer.refused


def test_a_capture_without_iterations_tells_nothing() -> None:
    assert "no whole iteration" in predict_size([*captures(8), SizedCapture(16, [])], 12, []).refused


RECOMMENDED = [
    ((8, 16), None, 32, "larger sizes were not seen"),
    ((64, 128), None, 135, "90 %"),  # 9 times 30 ms over 2 ms
    ((8, 16), 2e9, 20, "memory"),
    ((200, 400), None, 200, "smaller sizes were not seen"),
    ((8, 16), 1e9, 1, "not even that fits"),
]


@pytest.mark.parametrize(("sizes", "memory_bytes", "size", "reason"), RECOMMENDED)
def test_the_size_to_take(sizes: tuple[float, ...], memory_bytes: float | None, size: int, reason: str) -> None:
    found, words = recommend(captures(*sizes), memory_bytes)
    assert math.isclose(found, size, abs_tol=1)
    assert reason in words
