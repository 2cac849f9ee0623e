"""Trainings that use PyTorch's profiler themselves."""

import os
import tempfile

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
from training import SteadyTraining, run_one, tell

CPU = [ProfilerActivity.CPU]


def _in_cycles(**options) -> None:
    training, traces = SteadyTraining(), []

    def note(profiler):
        traces.append(len(profiler.key_averages()) > 0)

    cycle = schedule(wait=5, warmup=2, active=5, repeat=0)
    with profile(activities=CPU, schedule=cycle, on_trace_ready=note, record_shapes=True, **options) as profiler:
        while training.goes_on():
            training.iterate()
            profiler.step()
    tell(training.digest, len(traces) > 3, all(traces[:-1]))


def in_cycles() -> None:
    _in_cycles()


def in_cycles_with_stacks() -> None:
    _in_cycles(with_stack=True, profile_memory=True)


def _in_blocks(make) -> None:
    training, traces = SteadyTraining(), []
    while training.goes_on():
        with make() as profiler:
            for _ in range(4):
                training.iterate()
        traces.append(len(profiler.key_averages()) > 0)
        for _ in range(3):
            training.iterate()
    tell(training.digest, all(traces))


def in_blocks() -> None:
    _in_blocks(lambda: profile(activities=CPU))


def in_blocks_with_stacks() -> None:
    _in_blocks(lambda: profile(activities=CPU, with_stack=True))


def by_the_older_interface() -> None:
    _in_blocks(lambda: torch.autograd.profiler.profile(use_kineto=True))


def execution_trace() -> None:
    folder = tempfile.mkdtemp()
    observer = ExecutionTraceObserver()
    observer.register_callback(os.path.join(folder, "trace.json"))
    observer.start()
    SteadyTraining().run()
    observer.stop()
    observer.unregister_callback()


if __name__ == "__main__":
    run_one({name: value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")})
