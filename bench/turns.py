"""Two ways to run one trainer, compared by processes that take turns on one core.

Three trainers exist at the same time, pinned to the same core: bare, treated, and a second bare one as the control.
Whoever is not measured is stopped (SIGSTOP), so nobody disturbs his neighbour, and they go on in short blocks in the
order bare, treated, control, control, treated, bare: what drifts meets all three alike. A block begins with iterations
that do not count, since its caches hold what the process before left there. One such round gives one ratio for treated
and one for control. Processes differ for good by where their memory lies, so the whole is repeated with
fresh processes, and the interval is a bootstrap over processes first and rounds second.

What the method sees between two bare trainers is printed beside its answer: a difference is to be believed as far as it
exceeds that.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import mean, median

ORDER = ("bare", "treated", "control", "control", "treated", "bare")


@dataclass
class Runner:
    """A trainer that is stopped but for its turns."""

    process: subprocess.Popen[str]
    pid: int

    def run_block(self, iterations: int) -> tuple[int, int]:
        """(wall, CPU) of a block, in ns."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        os.kill(self.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(f"{iterations}\n")
            self.process.stdin.flush()
            wall, cpu = json.loads(self.process.stdout.readline())
        finally:
            os.kill(self.pid, signal.SIGSTOP)
        return wall, cpu


@contextmanager
def start_runner(command: Sequence[str], environment: dict[str, str], core: int, warm_up: int) -> Iterator[Runner]:
    """Starts `command`, which is or starts bench/iterations.py, with all that it starts on that core."""
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
        runner = Runner(process, int(process.stdout.readline()))
        try:
            runner.run_block(warm_up)
            yield runner
        finally:
            os.kill(runner.pid, signal.SIGCONT)
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


@dataclass(frozen=True)
class Comparison:
    """Excess over the bare trainer in percent: the value and its 95 % interval."""

    wall: tuple[float, float, float]
    cpu: tuple[float, float, float]
    rounds: int
    processes: int


def compare(
    start: Callable[[str, ExitStack], Runner], processes: int, rounds: int, block: int, lead_in: int
) -> tuple[Comparison, Comparison]:
    """(treated, control) against bare. `start` starts a runner of the kind "bare" or "treated".

    A block has `lead_in` iterations that do not count, and `block` that do.
    """
    excess: dict[tuple[str, int], list[list[float]]] = {(k, i): [] for k in ("treated", "control") for i in (0, 1)}
    for _ in range(processes):
        with ExitStack() as stack:
            runners = {
                "bare": start("bare", stack),
                "treated": start("treated", stack),
                "control": start("bare", stack),
            }
            for key in excess:
                excess[key].append([])
            for _ in range(rounds):
                totals = {name: [0, 0] for name in runners}
                for name in ORDER:
                    runners[name].run_block(lead_in)
                    for index, value in enumerate(runners[name].run_block(block)):
                        totals[name][index] += value
                for (name, index), values in excess.items():
                    values[-1].append(100 * (totals[name][index] / totals["bare"][index] - 1))
    treated, control = (
        Comparison(bootstrap(excess[name, 0]), bootstrap(excess[name, 1]), rounds, processes)
        for name in ("treated", "control")
    )
    return treated, control


def bootstrap(groups: Sequence[Sequence[float]], resamples: int = 2000) -> tuple[float, float, float]:
    """(value, low, high) of the mean over groups of the median within; deterministic, 95 %."""
    source = random.Random(20261121)
    means = []
    for _ in range(resamples):
        chosen = source.choices(groups, k=len(groups))
        means.append(mean(median(source.choices(group, k=len(group))) for group in chosen))
    means.sort()
    return mean(median(group) for group in groups), means[int(0.025 * resamples)], means[int(0.975 * resamples) - 1]
