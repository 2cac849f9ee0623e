"""The last iteration of a capture's window: modules are marked in it and in no other.

    waiting ──the last measured step──▶ marking ──the window's last step──▶ over

Guarantees: an order to watch that comes after the last measured step marks nothing; what is stopped begins no more, and
is taken off by the next step.
"""

from __future__ import annotations

from typing import Any, Callable

from fleetprof_agent.modules.marks import ModuleMarks

Send = Callable[..., bool]


class MarkedIteration:
    """The marked iteration of a capture.

    `current_step()`: Kineto's count; `follow(observe)` has it called after each step, None: no more.
    Raises what ModuleMarks raises.
    """

    def __init__(
        self,
        torch: Any,
        measured_step: int,
        last_step: int,
        current_step: Callable[[], int],
        follow: Callable[[Any], None],
    ) -> None:
        self._measured_step, self._last_step = measured_step, last_step
        self._current_step = current_step
        self._follow = follow
        self._marks = ModuleMarks(torch)
        self._has_begun = self._is_stopped = False
        self.is_over = False
        follow(self._observe)

    def stop(self) -> None:
        """Marks nothing any more; from any thread, and in a forked child."""
        self._is_stopped = True
        self._marks.stop()

    def flush(self, send: Send) -> bool:
        """Sends what is known of the modules once it is whole; False when something is left."""
        return not self._has_begun or not self.is_over or self._marks.table.flush(send)

    def _observe(self, optimizer: Any) -> None:
        step = self._current_step()
        if self._has_begun and not self._is_stopped and step <= self._last_step:
            self._marks.read_optimizer(optimizer)
        if not self._is_stopped and step == self._measured_step and not self._has_begun:
            self._has_begun = True
            self._marks.begin()
        elif self._is_stopped or step >= self._last_step:
            self._follow(None)
            if self._has_begun:
                self._marks.end()
                self._marks.weigh()
            self.is_over = True


def mark_iteration(
    arm: dict[str, Any], torch: Any, current_step: Callable[[], int], follow: Callable[[Any], None]
) -> MarkedIteration | None:
    """The marked iteration that this order to watch asks for, None where it asks for none."""
    measured, last = arm.get("measured_step"), arm.get("last_step")
    if type(measured) is not int or type(last) is not int or not 0 < measured < last:
        return None
    return MarkedIteration(torch, measured, last, current_step, follow)
