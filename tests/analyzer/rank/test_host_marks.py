"""Facts that samples tell that no row of the trace does: batches from a generator, runs of the collector."""

import numpy as np
import pytest
from fleetprof_analyzer.rank.host.marks import read_marks
from fleetprof_analyzer.rank.measures.data_loading import measure_data_loading
from fleetprof_analyzer.trace.trace import Category, Rows, Trace, TraceMetadata
from fleetprof_api.samples import CodePlace, CollectionColumns, RankSamples, ThreadColumns

NAMES = [
    "DistributedDataParallel.forward",
    "aten::randn",
    "aten::linear",
    "autograd::engine::evaluate_function: AddmmBackward0",
]
LOOP = CodePlace(file="/job/train.py", function="main", line=50)
STEP = CodePlace(file="/job/train.py", function="train", line=60, generator=True)
SLEEP = CodePlace(file="/job/train.py", function="save", line=70)
GENERATOR = CodePlace(file="/job/data.py", function="batches", line=7, generator=True)
EXPRESSION = CodePlace(file="/job/data.py", function="main.<locals>.<genexpr>", line=8, generator=True)
DATA_SET = CodePlace(file="/job/data.py", function="Texts.__getitem__", line=9)
MODULES = CodePlace(
    file="/venv/lib/python3.11/site-packages/torch/nn/modules/container.py", function="Sequential.__getitem__", line=3
)
PARAMETERS = CodePlace(
    file="/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
    function="Module.named_parameters",
    line=3,
    generator=True,
)
LOADER = CodePlace(file="/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", function="fetch", line=3)
BOUNDS = [(100, 200), (200, 300)]  # iterations, the forward pass begins in their middle


def trace_of(*rows: tuple[int, int, int, int]) -> Trace:
    """Rows (name, start, end, number of autograd) on one thread."""
    count = len(rows)
    nothing = np.full(count, -1, np.int64)
    table = Rows(
        category=np.full(count, Category.OPERATOR, np.int8), name=np.array([row[0] for row in rows], np.int32),
        place=np.zeros(count, np.int32), start_ns=np.array([row[1] for row in rows], np.int64),
        duration_ns=np.array([row[2] - row[1] for row in rows], np.int64), correlation=nothing,
        shape=nothing.astype(np.int32), collective=nothing.astype(np.int32),
        detail=np.array([row[3] for row in rows], np.int64),
    )  # fmt: skip
    return Trace("trace.json", TraceMetadata(), table, NAMES, [("1", "1")])


DDP = trace_of((1, 110, 112, -1), (0, 150, 160, -1), (1, 210, 212, -1), (0, 250, 260, -1))
# Without a range of the model: the operator that autograd goes back through; what has its number before it is not it.
PLAIN = trace_of((1, 110, 112, 7), (2, 150, 160, 7), (3, 170, 180, 7), (2, 250, 260, 8), (3, 270, 280, 8))


def samples_of(*samples: tuple[int, list[CodePlace]]) -> RankSamples:
    """Samples (time, stack with the innermost frame first)."""
    places = list(dict.fromkeys(place for _, stack in samples for place in stack))
    return RankSamples(
        rank=0, places=places, stacks=[[places.index(place) for place in stack] for _, stack in samples],
        thread=ThreadColumns(at_unix_ns=[at for at, _ in samples], stack=list(range(len(samples)))),
    )  # fmt: skip


def loading(trace: Trace, *samples: tuple[int, list[CodePlace]]) -> list[tuple[int, int]]:
    starts, ends = read_marks(trace, samples_of(*samples), BOUNDS).loading
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@pytest.mark.parametrize("trace", [DDP, PLAIN])
@pytest.mark.parametrize(("stack", "is_loading"), [
    ([GENERATOR, LOOP], True),
    ([DATA_SET, LOADER, LOOP], True),
    ([LOADER, LOOP], True),
    ([SLEEP, GENERATOR, LOOP], True),
    ([SLEEP, LOOP], False),
    ([EXPRESSION, LOOP], False),
    ([MODULES, LOOP], False),
    ([PARAMETERS, LOOP], False),
])  # fmt: skip
def test_a_batch_is_made_where_the_stack_goes_through_what_makes_it(
    trace: Trace, stack: list[CodePlace], is_loading: bool
) -> None:
    samples = [(105, [LOOP]), (125, stack), (140, stack), (170, [LOOP]), (225, stack), (270, [LOOP])]
    expected = [(105, 140), (200, 225)] if is_loading else []
    assert loading(trace, *samples) == expected


def test_after_the_forward_pass_has_begun_nothing_is_loading() -> None:
    assert loading(DDP, (145, [LOOP]), (165, [DATA_SET, LOOP]), (190, [DATA_SET, LOOP])) == []


def test_a_loop_that_is_a_generator_itself_loads_nothing() -> None:
    samples = [(105, [STEP, LOOP]), (130, [SLEEP, STEP, LOOP]), (170, [STEP, LOOP])]
    assert loading(DDP, *samples) == []
    assert loading(DDP, *samples, (205, [STEP, LOOP]), (230, [GENERATOR, STEP, LOOP])) == [(205, 230)]


def test_runs_of_the_collector() -> None:
    samples = RankSamples(
        rank=0, collections=CollectionColumns(start_unix_ns=[10, 15, -1, 90], duration_ns=[10, 10, 5, 0])
    )
    starts, ends = read_marks(DDP, samples, BOUNDS).collection
    assert (starts.tolist(), ends.tolist()) == ([10], [25])


def test_samples_of_nonsense_say_nothing() -> None:
    samples = RankSamples(
        rank=0, thread=ThreadColumns(at_unix_ns=[105, 125, 1 << 63, -5], stack=[7, -1, 0, None]), stacks=[[99, -1]]
    )
    assert len(read_marks(DDP, samples, BOUNDS).loading[0]) == 0


def test_sampled_loading_is_a_part_of_the_time_that_batches_take() -> None:
    marks = read_marks(DDP, samples_of((105, [LOOP]), (125, [GENERATOR, LOOP])), BOUNDS)
    assert measure_data_loading(DDP, marks.loading) == 20
    assert measure_data_loading(DDP, read_marks(DDP, None, BOUNDS).loading) is None
