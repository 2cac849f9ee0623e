"""The cost for a job of the agent's looks at its training thread: the same trainer with looks and without, by turns.

    python bench/cost/thread_samples.py [--quick]
    python bench/cost/thread_samples.py --worker operators|python

What can be counted is counted: the CPU time of the thread that looks, waits and wake-ups included. What that does to
the trainer besides (caches, turns at the interpreter) only the clock can tell, as far as a shared machine lets it.
The second form is a trainer as bench/cost/iterations.py is one, for blocks "with" or "without" looks: for its length a
thread waits and looks as the agent's does in a capture, at the same code's own pace. An iteration is mostly operators,
which let other threads run, or mostly Python, which does so when it is asked to.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

BENCH = Path(__file__).parents[1]
sys.path[:0] = [str(BENCH), str(BENCH.parent / "tests")]

from cost.turns import BARE, Way, compare, start_trainer  # noqa: E402
from figures import Figure  # noqa: E402

KINDS = ("operators", "python")
SAMPLED, CONTROL = "sampled", "control"
BLOCK_MS, ITERATION_MS = 500, 20
CORE = max(os.sched_getaffinity(0))
LIMIT_PERCENT = 1.0


def work(kind: str) -> None:
    """One block after another; see the module."""
    import torch
    from fleetprof_agent.samples.schedule import SchedulerFigures
    from fleetprof_agent.samples.thread_samples import ThreadSamples
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.randn(32, 256)
    trainer = threading.get_ident(), threading.get_native_id()

    def iterate() -> None:
        if kind == "python":
            rows = [str(number) for number in range(20_000)]
            sorted(row.zfill(9)[::-1] for row in rows)
        else:
            for _ in range(10):
                model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    def look(samples: ThreadSamples, wake: int) -> None:
        began = time.thread_time_ns()
        arrivals = select.poll()
        arrivals.register(wake, select.POLLIN)
        while not samples.is_over and not arrivals.poll(max(0.0, (samples.due - time.time_ns()) / 1e6)):
            samples.tick(time.time_ns(), 0)
        samples.end()
        counted.append((time.thread_time_ns() - began, len(samples._rows)))

    counted: list[tuple[int, int]] = []
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        count, sampled = line.split()
        if sampled == "count":
            looks = [look for _, look in counted]
            print(json.dumps([sum(spent for spent, _ in counted), sum(looks)]), flush=True)
            continue
        wake = os.eventfd(0)
        now = time.time_ns()
        arm = {"start_unix_ns": now, "end_unix_ns": now + 10**9 * BLOCK_MS // 1000}
        samples = ThreadSamples(arm, trainer[0], SchedulerFigures(trainer[1], 1), 0)
        thread = threading.Thread(target=look, args=(samples, wake))
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        if sampled == "with":
            thread.start()
        for _ in range(int(count)):
            iterate()
        took = [time.perf_counter_ns() - wall, time.process_time_ns() - cpu]
        os.eventfd_write(wake, 1)
        if sampled == "with":
            thread.join()
        os.close(wake)
        print(json.dumps(took), flush=True)


def start(kind: str, stack: ExitStack) -> dict[str, Way]:
    """One trainer, that is looked at or not."""
    command = [sys.executable, str(Path(__file__)), "--worker", kind]
    trainer = stack.enter_context(start_trainer(command, dict(os.environ), CORE, 20))
    bare = partial(trainer.run_block, hooked=False)
    return {BARE: bare, SAMPLED: trainer.run_block, CONTROL: bare}


def count(kind: str, blocks: int) -> tuple[float, float, float]:
    """(CPU time of the looks in percent of the time, looks per second, µs of a look) over so many blocks."""
    with ExitStack() as stack:
        command = [sys.executable, str(Path(__file__)), "--worker", kind]
        trainer = stack.enter_context(start_trainer(command, dict(os.environ), CORE, 20))
        before, _ = trainer.ask("0 count")
        wall = sum(trainer.run_block(BLOCK_MS // ITERATION_MS)[0] for _ in range(blocks))
        spent, looks = trainer.ask("0 count")
    return 100 * (spent - before) / wall, looks / wall * 1e9, (spent - before) / max(looks, 1) / 1e3


def measure(*, quick: bool) -> list[Figure]:
    """The cost by the clock and in CPU time, beside the same method's between two bare ways."""
    figures = []
    for kind in KINDS:
        found = compare(
            partial(start, kind),
            repeats=2 if quick else 6,
            rounds=4 if quick else 12,
            block=BLOCK_MS // ITERATION_MS,
            lead_in=0,
        )
        share, rate, each_us = count(kind, 4 if quick else 40)
        figures += [
            Figure(
                "samples",
                f"looks at the training thread, iterations of {kind}: counted",
                f"{share:.2f} % of a core, {rate:.0f} looks/s of {each_us:.0f} µs",
                f"<= {LIMIT_PERCENT:.0f} %",
                share <= LIMIT_PERCENT,
            ),
            Figure("samples", "  by the clock", _percent(found[SAMPLED].wall)),
            Figure("samples", "  the same method, bare against bare", _percent(found[CONTROL].wall)),
            Figure("samples", "  CPU time of the trainer, looks included", _percent(found[SAMPLED].cpu)),
        ]
    return figures


def _percent(values: tuple[float, float, float]) -> str:
    return "{:+.2f} % [{:+.2f}, {:+.2f}]".format(*values)


if __name__ == "__main__":
    if "--worker" in sys.argv:
        work(sys.argv[-1])
    else:
        for figure in measure(quick="--quick" in sys.argv):
            print(f"{figure.name:<80} {figure.value}")
