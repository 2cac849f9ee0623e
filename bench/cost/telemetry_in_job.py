"""The cost of telemetry in a training iteration: processor time of the agent's hook, counted, not the clock's.

    python bench/cost/telemetry_in_job.py [--rounds N]

A training on one thread, its hook called after each step, in rounds that take turns with an empty function, so that
both meet the same caches and neighbours. The thread's own processor time is read around each call (clock_gettime(2)):
other work on the machine is not in it. The agent serves a socket directory in which nobody answers, the dearest case:
each report fails. The interval is a bootstrap over rounds. No GPU is needed: our own part of its sample is counted with
NVML's answers recorded; the driver's part is bounded by the agent (fleetprof_agent.samples.slow_samples).
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from figures import Figure, quantile

ITERATIONS = 60
SKIPPED = 8  # after a change of turns the caches are others'
DRAWS = 2000
TARGET = 0.001
_SECTION = "telemetry"


class RecordedNvml:
    """NVML's answers of a GPU without GPM, as fast as Python gives them."""

    NVMLError = OSError

    def __getattr__(self, name):
        if name == "nvmlGpmQueryDeviceSupport":
            return lambda _handle: SimpleNamespace(isSupportedDevice=0)
        if name in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates"):
            return lambda _handle: SimpleNamespace(used=61 << 30, total=80 << 30, gpu=97, memory=40)
        return lambda *_arguments: 1980


def take_turn(torch, hook) -> tuple[float, float]:
    """(hook's, iteration's) mean processor time of a round, ns."""
    layers = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU()) for _ in range(6)]
    model, batch = torch.nn.Sequential(*layers), torch.randn(32, 1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    hooks, iterations = [], []
    for index in range(ITERATIONS):
        began = time.thread_time_ns()
        model(batch).square().mean().backward()
        optimizer.step()
        called = time.thread_time_ns()
        hook(optimizer, (), {})
        ended = time.thread_time_ns()
        optimizer.zero_grad()
        if index >= SKIPPED:
            hooks.append(ended - called)
            iterations.append(time.thread_time_ns() - began)
    return statistics.mean(hooks), statistics.mean(iterations)


def count_sample(directory: str) -> float:
    """Median processor time of one sample of a GPU and its message, ns."""
    from fleetprof_agent.channel import Channel
    from fleetprof_agent.samples import slow_samples
    from fleetprof_agent.samples.nvml import DeviceSampler

    channel = Channel(directory)
    samples = slow_samples.SlowSamples(channel, DeviceSampler(RecordedNvml(), 0), -slow_samples.SLOW_SAMPLE_NS)
    took, now = [], 0
    for step in range(300):
        now += 10 * slow_samples.SLOW_SAMPLE_NS
        began = time.thread_time_ns()
        samples.send_due(now, step)
        took.append(time.thread_time_ns() - began)
    channel.close()
    return statistics.median(took)


def _run(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as directory:
        os.environ |= {"KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": directory, "KINETO_LOG_LEVEL": "99"}
        import torch
        from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

        torch.set_num_threads(1)
        known = set(hooks.values())
        from fleetprof_agent import agent

        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        agent.start(lambda: None)
        optimizer.zero_grad()
        (ours,) = set(hooks.values()) - known
        hooks.clear()
        shares, lengths, costs = [], [], []
        for _ in range(rounds):
            nothing, iteration = take_turn(torch, lambda _optimizer, _args, _kwargs: None)
            hook, other = take_turn(torch, ours)
            costs.append(hook - nothing)
            lengths.append((iteration + other) / 2)
            shares.append(costs[-1] / lengths[-1])
        chance = random.Random(1)
        means = [statistics.mean(chance.choices(shares, k=len(shares))) for _ in range(DRAWS)]
        found = {
            "share": statistics.mean(shares), "low": quantile(means, 0.025), "high": quantile(means, 0.975),
            "hook_ns": statistics.mean(costs), "iteration_ns": statistics.mean(lengths), "rounds": rounds,
            "sample_ns": count_sample(directory),
        }  # fmt: skip
        json.dump(found, sys.stdout)
        agent._agent.leave()
        for leftover in Path(directory).iterdir():
            leftover.unlink()


def measure(rounds: int = 6) -> list[Figure]:
    """In a process of its own, which has PyTorch and the agent."""
    root = Path(__file__).parents[2]
    folders = os.pathsep.join([str(root / "sidecar"), str(root / "bench")])
    words = [sys.executable, __file__, "--rounds", str(rounds)]
    output = subprocess.run(
        words, env=os.environ | {"PYTHONPATH": folders}, check=True, capture_output=True, text=True
    ).stdout
    found = json.loads(output)
    share, low, high = (f"{found[name]:.3%}" for name in ("share", "low", "high"))
    from fleetprof_agent.samples.slow_samples import SLOW_SAMPLE_NS, SLOW_SAMPLE_SHARE

    sample_share = found["sample_ns"] / SLOW_SAMPLE_NS
    whole = found["high"] + 1 / SLOW_SAMPLE_SHARE
    length_ms = found["iteration_ns"] / 1e6
    return [
        Figure(
            _SECTION,
            f"in the job: hook and reports, of an iteration of {length_ms:.0f} ms of CPU",
            f"{found['hook_ns'] / 1e3:.1f} µs of CPU, {share} [{low}, {high}]",
            "<= 0.1 %",
            found["high"] <= TARGET,
        ),
        Figure(
            _SECTION,
            "in the job: a sample of the GPU every five seconds, our own part",
            f"{found['sample_ns'] / 1e3:.0f} µs of CPU, {sample_share:.4%}",
        ),
        Figure(
            _SECTION,
            "in the job: all of it, with the slowest driver that is borne",
            f"{whole:.3%} at most",
            "<= 0.1 %",
            whole <= TARGET,
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    _run(parser.parse_args().rounds)
