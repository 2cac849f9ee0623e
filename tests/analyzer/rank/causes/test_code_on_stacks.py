"""Causes that stacks prove: by code that says what it does, and by nothing that only looks like it."""

from collections.abc import Sequence

import pytest
from fleetprof_api.report.rank_tables import KnownCause
from fleetprof_api.samples import CodePlace
from harness.traces.written_loop import TRAIN, WrittenLoop

MS = 1_000_000
PACKAGES = "/venv/lib/python3.12/site-packages"
STANDARD = "/usr/lib/python3.12"


def frame(file: str, function: str) -> CodePlace:
    """A line of an installed package, or of the standard library."""
    return CodePlace(
        file=f"{PACKAGES if '/' in file and file[0] != '.' else STANDARD}/{file}", function=function, line=9
    )


LOADER = "torch/utils/data/dataloader.py"
NEXT = frame(LOADER, "_BaseDataLoaderIter.__next__")
ITERATE = frame(LOADER, "DataLoader.__iter__")
START = CodePlace(file=f"{STANDARD}/multiprocessing/process.py", function="BaseProcess.start", line=121)
OLD_START = CodePlace(file="/usr/lib/python3.10/multiprocessing/process.py", function="start", line=121)
QUEUE = CodePlace(file=f"{STANDARD}/multiprocessing/queues.py", function="Queue.__init__", line=42)
ITERATOR = frame(LOADER, "DataLoader._get_iterator")
SAMPLER = frame("torch/utils/data/sampler.py", "RandomSampler.__iter__")
FORK = CodePlace(file=f"{STANDARD}/multiprocessing/popen_fork.py", function="Popen._launch", line=66)
SHUT_DOWN = frame(LOADER, "_MultiProcessingDataLoaderIter._shutdown_workers")
SELECT = CodePlace(file=f"{STANDARD}/selectors.py", function="_PollLikeSelector.select", line=415)
CONVERT = frame("torch/_dynamo/convert_frame.py", "_compile")
GUARDS = frame("torch/_dynamo/guards.py", "CheckFunctionManager.__init__")
TRITON = frame("torch/_inductor/codegen/triton.py", "TritonKernel.codegen_body")
DISABLED = frame("torch/_dynamo/eval_frame.py", "DisableContext.__call__.<locals>._fn")
COMPILED = frame("torch/_inductor/output_code.py", "CompiledFxGraph.__call__")
ALIGNED = frame("torch/_inductor/compile_fx.py", "align_inputs_from_check_idxs.<locals>.run")
SAVE = frame("torch/serialization.py", "_save")
DCP = frame("torch/distributed/checkpoint/filesystem.py", "_write_item")
LOAD = frame("torch/serialization.py", "_load")
EMIT = CodePlace(file=f"{STANDARD}/logging/__init__.py", function="StreamHandler.emit", line=1113)
LOCK = CodePlace(file=f"{STANDARD}/logging/__init__.py", function="_releaseLock", line=237)
WANDB = frame("wandb/sdk/wandb_run.py", "Run.log")
AGENT = frame("wandb/agents/pyagent.py", "Agent._run_job")
BAR = frame("tqdm/std.py", "tqdm.__iter__")
POSTFIX = frame("tqdm/std.py", "tqdm.set_postfix")
LINEAR = frame("torch/nn/modules/linear.py", "Linear.forward")
HELPER = CodePlace(file="/home/me/tools.py", function="report", line=7)


def looked(
    *stack: CodePlace, gpu: bool = False, in_iterations: tuple[int, ...] = (3, 9), step_ms: float = 1
) -> WrittenLoop:
    """A loop whose thread is there in the first 5 ms of some iterations, and elsewhere in its own line."""
    loop = WrittenLoop(gpu=gpu)
    for number in in_iterations:
        for count in range(1, 6):
            loop.look(10 * number + count * step_ms, *stack, TRAIN)
    loop.look_all_along()
    return loop


def proven(loop: WrittenLoop) -> list[KnownCause]:
    return list(loop.causes())


@pytest.mark.parametrize(("stack", "cause"), [
    ((FORK, START, ITERATE), "workers_started"),
    ((FORK, OLD_START, ITERATE), "workers_started"),
    ((SELECT, SHUT_DOWN), "workers_started"),
    ((LOCK, FORK, START, ITERATE), "workers_started"),
    ((QUEUE, ITERATOR, ITERATE), "workers_started"),
    ((GUARDS, CONVERT), "compilation"),
    ((TRITON,), "compilation"),
    ((SAVE,), "checkpoint"),
    ((DCP,), "checkpoint"),
    ((SAVE, HELPER), "checkpoint"),
    ((EMIT,), "logging"),
    ((EMIT, WANDB), "logging"),
    ((POSTFIX,), "logging"),
])  # fmt: skip
def test_code_that_says_what_it_does(stack: tuple[CodePlace, ...], cause: str) -> None:
    (found,) = proven(looked(*stack))
    assert (found.cause, found.iterations) == (cause, 2)
    assert found.place is not None
    assert found.place.function == (HELPER if HELPER in stack else TRAIN).function
    if cause != "workers_started":  # of all iterations alike, what these take longer is nothing but the starts
        assert found.time_ns == 10 * MS


@pytest.mark.parametrize("stack", [
    pytest.param((SELECT, NEXT), id="a wait for workers that live on"),
    pytest.param((FORK, START, HELPER), id="a process of the user's own"),
    pytest.param((SAMPLER, ITERATOR, ITERATE), id="a sampler that shuffles for the epoch"),
    pytest.param((QUEUE, NEXT), id="an order for workers that live on"),
    pytest.param((DISABLED,), id="what dynamo leaves alone"),
    pytest.param((LINEAR, COMPILED), id="a compiled graph that runs"),
    pytest.param((ALIGNED,), id="its wrapper"),
    pytest.param((LOAD,), id="a checkpoint that is read"),
    pytest.param((SELECT, NEXT, BAR), id="a bar around a loader that waits"),
    pytest.param((LINEAR, HELPER, AGENT), id="a tracker that started the program"),
])  # fmt: skip
def test_code_that_does_something_else(stack: tuple[CodePlace, ...]) -> None:
    assert not proven(looked(*stack))


@pytest.mark.parametrize(("gpu", "elsewhere", "time_ms"), [
    # `log.info("%f", loss.item())`: the value is worked out for the log alone.
    (False, True, 40), (True, True, 20),
    # A line that does something else most of the time.
    (False, False, 20),
])  # fmt: skip
def test_what_a_line_works_out_to_log_it_is_logging(gpu: bool, elsewhere: bool, time_ms: int) -> None:
    loop = WrittenLoop(gpu=gpu)
    for number in range(10):
        for count in (1, 2):
            loop.look(10 * number + count, EMIT, TRAIN)
        for count in (3, 4):
            loop.look(10 * number + count, TRAIN)
        for count in range(5, 10):
            loop.look(10 * number + count, *((HELPER,) if elsewhere else (TRAIN,)))
    (found,) = proven(loop)
    assert found.cause == "logging"
    assert found.time_ns == pytest.approx(time_ms * MS, rel=0.05)


@pytest.mark.parametrize(("logs", "permille", "iterations"), [(4, 1000, 12), (3, 714, 5)])
def test_of_few_samples_their_share_counts_and_not_their_time_in_an_iteration(
    logs: int, permille: int, iterations: int
) -> None:
    """A sample every 15 ms, so that eight of twelve iterations of 10 ms have one: of each four, so many log.

    The first one stands for nothing.
    """
    loop = WrittenLoop()
    for number in range(8):
        loop.look(15 * number + 5, *((EMIT, TRAIN) if number % 4 < logs else (HELPER,)))
    (found,) = proven(loop)
    assert (found.gain_permille, found.iterations) == (permille, iterations)


def test_one_sample_of_what_may_be_short_proves_nothing() -> None:
    loop = WrittenLoop()
    loop.look(31, EMIT, TRAIN)
    loop.look_all_along()
    assert not proven(loop)


@pytest.mark.parametrize(("stack", "cause"), [((FORK, START, ITERATE), "workers_started"), ((SAVE,), "checkpoint")])
def test_one_sample_proves_a_pause_that_nothing_else_makes(stack: tuple[CodePlace, ...], cause: str) -> None:
    loop = WrittenLoop()
    loop.look(31, *stack, TRAIN)
    loop.look_all_along()
    (found,) = proven(loop)
    assert (found.cause, found.iterations) == (cause, 1)


def test_a_checkpoint_beside_the_work_of_the_device_costs_nothing() -> None:
    loop = WrittenLoop(gpu=True)
    for at in (36, 37, 38):  # the kernel runs from 36 to 38.4
        loop.look(at, SAVE, TRAIN)
    loop.look_all_along()
    (found,) = proven(loop)
    assert found.time_ns == pytest.approx(MS, abs=0.01 * MS)  # of the 3 ms up to 38


LOADS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
Row = tuple[str, float, float]


def uneven(
    rows: Sequence[Row] = (), late: Sequence[Row] = (), length_ms: float = 40
) -> tuple[WrittenLoop, list[float]]:
    """A loop whose iterations 3 and 9 are longer, and when each iteration begins, ms.

    They have these rows (name, from their start on, length), and the later one those of `late` if there are any.
    """
    loop = WrittenLoop(iterations=0)
    starts: list[float] = []
    at = 0.0
    for number in range(12):
        length = {3: 40.0, 9: length_ms}.get(number, 10.0)
        loop.add(f"ProfilerStep#{number}", at, length, category="user_annotation")
        loop.add("aten::randn", at + length - 6, 0.5)
        loop.add("aten::linear", at + length - 4, 1, number=number)
        loop.add("autograd::engine::evaluate_function: AddmmBackward0", at + length - 2.5, 1, 200, number=number)
        for name, first, lasts in (late or rows) if number == 9 else rows if number == 3 else ():
            loop.add(name, at + first, lasts, category="user_annotation" if name == LOADS else "cpu_op")
        starts.append(at)
        at += length
    loop.iterations, loop.length_ms = round(at / 10), 10
    return loop, starts


def test_the_wait_after_new_workers_is_theirs() -> None:
    """The epoch's first batch takes 30 ms more, 4 ms of which workers start in."""
    loop, starts = uneven()
    for number in (3, 9):
        for count in range(1, 5):
            loop.look(starts[number] + count, FORK, START, ITERATE, TRAIN)
    loop.look_all_along()
    (found,) = proven(loop)
    assert (found.cause, found.iterations, found.time_ns) == ("workers_started", 2, 60 * MS)


EPOCH = [(LOADS, 0.1, 5.0), (LOADS, 20.0, 12.0)]


@pytest.mark.parametrize(("cause", "stack", "rows", "late", "length_ms", "other", "found"), [
    pytest.param("workers_started", (FORK, START, ITERATE), EPOCH, [], 40, [(9, 30)], 2, id="the same rows"),
    pytest.param("workers_started", (FORK, START, ITERATE), EPOCH, EPOCH[:1], 40, [], 1, id="one row of two"),
    pytest.param("workers_started", (FORK, START, ITERATE), EPOCH, [], 24, [], 1, id="less than half as long"),
    pytest.param("checkpoint", (SAVE,), [], [], 40, [], 2, id="the same silence, without a sample"),
    pytest.param("checkpoint", (SAVE,), [], [], 40, [(9, 30)], 2, id="with the same line in it"),
    pytest.param("checkpoint", (SAVE,), [], [], 40, [(9, 5)], 1, id="with another function in it"),
    pytest.param("checkpoint", (SAVE,), [], [("aten::sort", 2, 30)], 40, [], 1, id="a long operator"),
    pytest.param("checkpoint", (SAVE,), [], [("aten::sort", 2, 1)], 40, [], 1, id="a silence behind another operator"),
])  # fmt: skip
def test_an_iteration_without_a_sample_of_it_has_the_pause_that_looks_the_same(
    cause: str, stack: tuple[CodePlace, ...], rows: list[Row], late: list[Row], length_ms: float,
    other: list[tuple[int, int]], found: int,
) -> None:  # fmt: skip
    """Iteration 3 is sampled in its pause, 9 nowhere or, by `other`, in the same line (30 ms on) or another's (5)."""
    loop, starts = uneven(rows, late, length_ms)
    loop.look(starts[3] - 5)
    loop.look(starts[3] + 15, *stack, TRAIN)
    loop.look(starts[3] + 36)
    for number, at in other:
        loop.look(starts[number] + at, *((HELPER, TRAIN) if at == 5 else (TRAIN,)))
    loop.look(starts[9] + 45)
    (one,) = proven(loop)
    assert (one.cause, one.iterations) == (cause, found)
    assert one.time_ns == 30 * MS * found


@pytest.mark.parametrize(("first", "found"), [(5, 8 * MS), (20, 0)])
def test_without_samples_a_new_region_late_behind_the_look_into_the_cache_tells(first: int, found: int) -> None:
    """From iteration `first` on nothing is new."""
    loop = WrittenLoop(has_samples=False, forward_at_ms=7.5, backward_at_ms=8.6)
    for number in range(12):
        late = number == first
        loop.add("TorchDynamo Cache Lookup", 10 * number + 0.1, 0.1)
        region = 0 if number < first else 1
        loop.add(f"Torch-Compiled Region: 0/{region}", 10 * number + (8.2 if late else 0.3), 0.3)
    causes = proven(loop)
    assert sum(one.time_ns for one in causes) == found
    assert {one.cause for one in causes} <= {"compilation"}
