"""The search for unused parameters, by its own row, with the notes of each parameter; DDP's other rows are none."""

import pytest
from harness.traces.written_loop import AUTOGRAD, WrittenLoop

MS = 1_000_000
SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"
COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
GRADIENT = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
Row = tuple[str, float, float]


def found(*rows: Row, searches: bool = True) -> list[tuple[str, float, int]]:
    """Twelve iterations with these rows (name, when, how long in ms) of autograd, behind a search of 2 ms."""
    loop = WrittenLoop()
    for number in range(12):
        if searches:
            loop.add(SEARCH, 10 * number + 3, 2)
        for name, at, lasts in rows:
            loop.add(name, 10 * number + at, lasts, AUTOGRAD)
    return [(one.cause, one.time_ns / (12 * MS), one.iterations) for one in loop.causes()]


@pytest.mark.parametrize(("rows", "each_ms"), [
    pytest.param([], 2, id="the search alone"),
    pytest.param([(GRADIENT, 7.7, 0.5), ("aten::detach", 7.72, 0.01), ("aten::select", 7.75, 0.1),
                  ("aten::as_strided", 7.8, 0.02), ("aten::fill_", 7.85, 0.1)], 2.2, id="noted as it comes"),
    pytest.param([(GRADIENT, 7.7, 0.1), ("aten::select", 8.55, 0.1), ("aten::as_strided", 8.6, 0.01),
                  ("aten::item", 8.65, 0.1), ("aten::_local_scalar_dense", 8.7, 0.01), (COPY, 8.75, 0.1)], 2.2,
                 id="read before its copy"),
    pytest.param([(GRADIENT, 7.7, 0.1), ("aten::select", 8.55, 0.1), ("aten::item", 8.65, 0.1)], 2,
                 id="a metric that is read"),
    pytest.param([(GRADIENT, 7.7, 0.1), ("aten::select", 7.85, 0.1), ("aten::fill_", 7.95, 0.1)], 2,
                 id="filled elsewhere"),
])  # fmt: skip
def test_the_row_tells_and_the_notes_count(rows: list[Row], each_ms: float) -> None:
    ((cause, time_ms, iterations),) = found(*rows)
    assert (cause, iterations) == ("unused_parameters", 12)
    assert time_ms == pytest.approx(each_ms, abs=0.001)


@pytest.mark.parametrize("rows", [
    pytest.param([(COPY, 8.75, 0.1)], id="another row of the reducer"),
    pytest.param([(GRADIENT, 7.7, 0.5), ("aten::select", 7.75, 0.1), ("aten::fill_", 7.85, 0.1)], id="notes alone"),
])  # fmt: skip
def test_without_the_row_nothing_tells(rows: list[Row]) -> None:
    assert found(*rows, searches=False) == []
