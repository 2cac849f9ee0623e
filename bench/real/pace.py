"""Runs a program in turns and prints how long the steps of each took, with nothing of ours in it.

    python bench/real/pace.py PROGRAM PERIOD SECONDS

Each line of standard input is a turn of so many seconds and whole periods; between turns the program stands still at
the end of a step, so two programs can take turns on one machine. The first period of a turn is not counted: it lives
on what loaders had ready. `turn NS STEPS` is printed for each. FAULT=0 in its environment runs a program of
programs/causes without its cause. Of several ranks the first one counts.
"""

from __future__ import annotations

import os
import runpy
import sys
import time

from torch.optim.optimizer import register_optimizer_step_post_hook

LEAST_WARM_UP = 6  # steps


class PacedProgram:
    """A program that runs in turns; `end_step` is called at the end of each of its steps."""

    def __init__(self, period: int, seconds: float) -> None:
        self.period, self.length_ns = period, round(1e9 * seconds)
        self.steps, self.began_ns = self._wait(), 0

    def end_step(self, *_: object) -> None:
        """Prints a turn where one ends, and waits for the next."""
        self.steps += 1
        now = time.monotonic_ns()
        if self.steps == 0:
            self.began_ns = now
        elif self.steps > 0 and self.steps % self.period == 0 and now - self.began_ns >= self.length_ns:
            print("turn", now - self.began_ns, self.steps, flush=True)
            self.steps = self._wait()

    def _wait(self) -> int:
        """The number of steps, negative, until the turn that is asked for counts."""
        if not sys.stdin.readline():
            sys.exit(0)
        return -self.period * -(-LEAST_WARM_UP // self.period)


def main() -> None:
    program, period, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if os.environ.get("RANK", "0") == "0":
        register_optimizer_step_post_hook(PacedProgram(period, seconds).end_step)
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
