"""The optimizer hook: it records each step, and calls the agent at most every LISTEN_NS.

Guarantees: no exception of ours reaches the training, and one of the job's passes (`errors`); a step costs a clock
reading, three list writes and two comparisons (bench/cost/agent_hook.py measures it); PyTorch's table of hooks never
shrinks under its feet.
"""

from __future__ import annotations

import time
from typing import Any, Callable

from fleetprof_agent.errors import pass_on, report_error
from fleetprof_agent.steps.ring import MASK, StepRing

LISTEN_NS = 1_000_000_000 // 4  # how long a command waits at most, if steps are shorter

Hook = Callable[[Any, Any, Any], None]


def _ignore_step(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
    """Stands where the hook was."""


# The same, and seen by no profiler: that shows functions, Python's and C's, and a type is neither.
_REST: Any = slice


class StepHook:
    """The hook of one process. `serve(optimizer, now)`: what is due besides; `fail()`: after an error of ours."""

    def __init__(
        self,
        ring: StepRing,
        current_step: Callable[[], int],
        serve: Callable[[Any, int], None],
        fail: Callable[[], None],
    ) -> None:
        self.next_service = 0  # Unix ns
        self._record_step = self._usual = self._make(ring, current_step, serve, fail)
        self._module: Any = None
        self._handle: Any = None

    def register(self, module: Any) -> None:
        """Has PyTorch call the hook after Kineto has counted the step. `module`: torch.optim.optimizer."""
        self._handle = module.register_optimizer_step_post_hook(self._record_step)
        self._module = module

    def follow(self, observe: Callable[[Any], None] | None) -> None:
        """Has `observe` called with the optimizer after each step, in the thread that made it; None: no more."""
        usual = self._usual

        def record_and_observe(optimizer: Any, args: Any, kwargs: Any) -> None:
            usual(optimizer, args, kwargs)
            try:
                observe(optimizer)  # type: ignore[misc]
            except Exception as error:
                pass_on(error)
                report_error()
                self.follow(None)

        record_and_observe._torchdynamo_disable = True  # type: ignore[attr-defined]
        self._record_step = usual if observe is None else record_and_observe
        if self._module is not None and self._module._global_optimizer_post_hooks.get(self._handle.id) is not _REST:
            self._place(self._record_step)

    def rest(self) -> None:
        """No step is recorded, and nothing of ours runs, until `resume`."""
        self._place(_REST)

    def resume(self) -> None:
        """Steps are recorded again."""
        self._place(self._record_step)

    def give_up(self) -> None:
        """No step is recorded any more."""
        self._place(_ignore_step)

    def _place(self, hook: Hook) -> None:
        # Not removed: PyTorch may be iterating over its hooks at this moment, and a dict that shrinks then would raise
        # in the training. One that the job removed, or that was given up, stays so.
        if self._module is not None:
            hooks = self._module._global_optimizer_post_hooks
            if hooks.get(self._handle.id, _ignore_step) is not _ignore_step:
                hooks[self._handle.id] = hook

    def _make(
        self,
        ring: StepRing,
        current_step: Callable[[], int],
        serve: Callable[[Any, int], None],
        fail: Callable[[], None],
    ) -> Hook:
        time_ns = time.time_ns
        column_step, column_end, column_optimizer = ring.step, ring.end_unix_ns, ring.optimizer

        def record_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            try:
                now = time_ns()
                row = ring.count
                slot = row & MASK
                column_step[slot] = current_step()
                column_end[slot] = now
                column_optimizer[slot] = id(optimizer)
                ring.count = row + 1
                if now >= self.next_service or now < self.next_service - LISTEN_NS:  # or the clock was set back
                    serve(optimizer, now)
            except Exception as error:
                pass_on(error)
                report_error()
                fail()

        # torch.compile must neither trace this function nor guard on what it touches.
        record_step._torchdynamo_disable = True  # type: ignore[attr-defined]
        return record_step
