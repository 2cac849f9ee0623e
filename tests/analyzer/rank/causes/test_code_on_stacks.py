"""Causes that stacks prove: by code that says what it does, and by nothing that only looks like it."""

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
    pytest.param((DISABLED,), id="what dynamo leaves alone"),
    pytest.param((LINEAR, COMPILED), id="a compiled graph that runs"),
    pytest.param((ALIGNED,), id="its wrapper"),
    pytest.param((LOAD,), id="a checkpoint that is read"),
    pytest.param((SELECT, NEXT, BAR), id="a bar around a loader that waits"),
    pytest.param((LINEAR, HELPER, AGENT), id="a tracker that started the program"),
])  # fmt: skip
def test_code_that_does_something_else(stack: tuple[CodePlace, ...]) -> None:
    assert not proven(looked(*stack))


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


def test_the_wait_after_new_workers_is_theirs() -> None:
    """The epoch's first batch takes 30 ms more, 4 ms of which workers start in."""
    loop = WrittenLoop(iterations=0)
    for number in range(12):
        at = sum(40 if before % 6 == 3 else 10 for before in range(number))
        length = 40 if number % 6 == 3 else 10
        loop.add(f"ProfilerStep#{number}", at, length, category="user_annotation")
        loop.add("aten::linear", at + length - 4, 1, number=number)
        loop.add("autograd::engine::evaluate_function: AddmmBackward0", at + length - 2.5, 1, 200, number=number)
        if length == 40:
            for count in range(1, 5):
                loop.look(at + count, FORK, START, ITERATE, TRAIN)
    loop.iterations, loop.length_ms = 18, 10
    loop.look_all_along()
    (found,) = proven(loop)
    assert (found.cause, found.iterations, found.time_ns) == ("workers_started", 2, 60 * MS)


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
