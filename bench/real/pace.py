"""Runs a program for some seconds and prints the mean time between two optimizer steps, ns, with nothing of ours in it.

    python bench/real/pace.py PROGRAM SECONDS

FAULT=0 in its environment runs a program of programs/causes without its cause. Of several ranks the first one prints;
the program goes on until it is stopped.
"""

from __future__ import annotations

import os
import runpy
import sys
import time

from torch.optim.optimizer import register_optimizer_step_post_hook

WARM_UP = 5  # steps


def main() -> None:
    program, seconds = sys.argv[1], float(sys.argv[2])
    ends: list[int] = []

    def note(*_: object) -> None:
        ends.append(time.monotonic_ns())
        if len(ends) > WARM_UP + 1 and ends[-1] - ends[WARM_UP] >= 1e9 * seconds:
            print("pace", (ends[-1] - ends[WARM_UP]) // (len(ends) - 1 - WARM_UP), flush=True)
            hook.remove()

    if os.environ.get("RANK", "0") == "0":
        hook = register_optimizer_step_post_hook(note)
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
