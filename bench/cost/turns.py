"""Ways to run one trainer, compared with the bare one, which take turns on one core.

They go on in short blocks. Each round lets every way run twice, in an order drawn anew and then in the reverse of it,
so that what drifts evenly meets all alike. A block may begin with iterations that do not count, where what the one
before left in the caches would weigh. One round gives one ratio to the bare way for each other one. Ways are either
processes of their own, of which all but one are stopped (SIGSTOP), or states between which one process is switched.
Processes differ for good by where their memory lies, so the whole is repeated with fresh ones, and the interval is a
bootstrap over these first and rounds second; a process that is switched is the same for all ways, so that this
difference falls out.

What the method sees between two bare ways (the control) is printed beside its answer: a difference is to be believed as
far as it exceeds that.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import mean, median

BARE = "bare"
Way = Callable[[int], tuple[int, int]]
"""Runs so many iterations; their (wall, CPU) time in ns."""


@dataclass
class Trainer:
    """bench/cost/iterations.py, between two blocks."""

    process: subprocess.Popen[str]
    pid: int

    def run_block(self, iterations: int, *, hooked: bool = True) -> tuple[int, int]:
        """(wall, CPU) of a block, in ns."""
        return self.ask(f"{iterations} {'with' if hooked else 'without'}")

    def ask(self, line: str) -> tuple[int, int]:
        """The answer: two numbers."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        one, other = json.loads(self.process.stdout.readline())
        return one, other

    def run_alone(self, iterations: int) -> tuple[int, int]:
        """The same of a trainer that is stopped between its blocks."""
        os.kill(self.pid, signal.SIGCONT)
        try:
            return self.run_block(iterations)
        finally:
            os.kill(self.pid, signal.SIGSTOP)


@contextmanager
def start_trainer(command: Sequence[str], environment: dict[str, str], core: int, warm_up: int) -> Iterator[Trainer]:
    """Starts `command`, which is or starts bench/cost/iterations.py, with all that it starts on that core."""
    process = subprocess.Popen(
        ["taskset", "--cpu-list", str(core), *command],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        trainer = Trainer(process, int(process.stdout.readline()))
        try:
            trainer.run_block(warm_up)
            yield trainer
        finally:
            os.kill(trainer.pid, signal.SIGCONT)
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


@dataclass(frozen=True)
class Comparison:
    """Excess over the bare way in percent: the value and its 95 % interval."""

    wall: tuple[float, float, float]
    cpu: tuple[float, float, float]


def compare(
    start: Callable[[ExitStack], Mapping[str, Way]], *, repeats: int, rounds: int, block: int, lead_in: int
) -> dict[str, Comparison]:
    """Each way that `start` starts against that called BARE. A block has `lead_in` iterations before its `block`."""
    source = random.Random(20261122)
    excess: dict[tuple[str, int], list[list[float]]] = {}
    for repeat in range(repeats):
        with ExitStack() as stack:
            ways = start(stack)
            for _ in range(rounds):
                order = source.sample(list(ways), len(ways))
                taken = dict.fromkeys(ways, (0, 0))
                for name in (*order, *reversed(order)):
                    if lead_in:
                        ways[name](lead_in)
                    wall, cpu = ways[name](block)
                    taken[name] = taken[name][0] + wall, taken[name][1] + cpu
                for name in ways.keys() - {BARE}:
                    for index in (0, 1):
                        groups = excess.setdefault((name, index), [])
                        groups.extend([] for _ in range(repeat + 1 - len(groups)))
                        groups[-1].append(100 * (taken[name][index] / taken[BARE][index] - 1))
    return {name: Comparison(bootstrap(excess[name, 0]), bootstrap(excess[name, 1])) for name, _ in excess}


def bootstrap(groups: Sequence[Sequence[float]], resamples: int = 2000) -> tuple[float, float, float]:
    """(value, low, high) of the mean over groups of the median within; deterministic, 95 %."""
    source = random.Random(20261121)
    means = []
    for _ in range(resamples):
        chosen = source.choices(groups, k=len(groups))
        means.append(mean(median(source.choices(group, k=len(group))) for group in chosen))
    means.sort()
    return mean(median(group) for group in groups), means[int(0.025 * resamples)], means[int(0.975 * resamples) - 1]
