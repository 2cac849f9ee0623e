"""A history of captures: each is predicted from those before it alone, and compared with what came."""

import pytest
from fleetprof_analyzer.whatif.backtest import backtest
from fleetprof_analyzer.whatif.batch_sizes import SizedCapture


def history(*sizes: float, factor: float = 1.0) -> list[tuple[str, SizedCapture]]:
    """On one line but for the last, which takes `factor` times as long."""
    times = [(2 * size + 30) * 1e6 for size in sizes]
    times[-1] *= factor
    return [
        (f"capture{number}", SizedCapture(size, [time * 0.99, time, time * 1.01]))
        for number, (size, time) in enumerate(zip(sizes, times, strict=True))
    ]


def test_a_history_on_a_line_was_predicted() -> None:
    found = backtest(history(8, 16, 24, 32))
    assert [one.capture for one in found.predictions] == ["capture2", "capture3"]
    assert (found.not_predicted, found.inside) == (2, 1.0)
    assert found.median_error == pytest.approx(0, abs=1e-6)


def test_what_came_otherwise_is_outside_with_its_error() -> None:
    found = backtest(history(8, 16, 24, factor=1.5))
    assert [one.inside for one in found.predictions] == [False]
    assert found.worst_error == pytest.approx(1 - 1 / 1.5)


def test_what_came_later_is_not_used() -> None:
    assert backtest(history(24, 8, 16)).predictions[0].capture == "capture2"


@pytest.mark.parametrize("sizes", [(8,), (8, 8, 8), (8, 16, 64)])
def test_without_two_sizes_before_it_or_far_from_them_nothing_was_predicted(sizes: tuple[float, ...]) -> None:
    found = backtest(history(*sizes))
    assert (found.predictions, found.not_predicted, found.inside) == ([], len(sizes), None)
