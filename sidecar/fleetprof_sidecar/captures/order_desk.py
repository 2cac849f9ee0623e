"""Hands orders to processes and their agents, and remembers whose order a process has.

Guarantees: a profiler has one slot, so a process has the order of one capture at a time, and only that capture can take
it back, hear of its delivery, or stop what runs; another one is told who is before it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar.capture.events import OrderRejected
from fleetprof_sidecar.capture.orders import agent_command, build_order, cancel_command, window_end_unix_ns
from fleetprof_sidecar.capture.process_capture import ProcessCapture
from fleetprof_sidecar.captures.headroom import Disk, find_shortage
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.processes.views import OrderRefused
from fleetprof_sidecar.profiler import Profiler

# From the end of a window by time to Kineto's slot being free again.
_WINDOW_MARGIN_NS: Final = 2_000_000_000
_OWN_PROFILE_NS: Final = 60_000_000_000  # how long an agent's word is waited for that nothing is left of an order
# Of the table's refusals; all others are about processes that never ask for work.
_REASONS: Final = {"Outstanding": Reason.BUSY, "NotStepping": Reason.NOT_STEPPING, "ProfilesItself": Reason.BUSY}


class OrderDesk:
    """For the captures of one sidecar."""

    def __init__(self, processes: Processes, traces: Path, disk: Disk, profiler: Profiler) -> None:
        self._processes = processes
        self._traces = traces
        self._disk = disk
        self._profiler = profiler
        self._holders: dict[str, str] = {}  # process_id → capture_id

    def place(self, capture: ProcessCapture, now_unix_ns: int, promised_bytes: int = 0) -> OrderRejected | None:
        """Has the order of `capture` delivered; why not, when it cannot be. `promised_bytes`: room.find_shortage."""
        terms = capture.terms
        view = self._processes.get(terms.process_id)
        if view is None:
            return OrderRejected(Reason.NOT_POLLING, "no such process is here: it ended", now_unix_ns)
        try:
            config, deliver_until = build_order(terms, self._traces, view.device_kind, self._profiler)
        except ValueError as problem:
            return OrderRejected(Reason.INTERNAL, str(problem), now_unix_ns)
        if now_unix_ns >= deliver_until:
            text = "the order reached the sidecar when the time to hand it over had passed: it was stopped or cut off"
            return OrderRejected(Reason.TOO_LATE, text, now_unix_ns)
        if shortage := find_shortage(terms, view, self._disk, promised_bytes, now_unix_ns):
            return shortage
        if terms.has_agent:
            # First, so that the exit guard watches before Kineto can begin.
            self._processes.send_to_agent(terms.process_id, "arm", **agent_command(terms))
        try:
            self._processes.place_order(
                terms.process_id,
                config,
                deliver_until,
                terms.first_step,
                warmup_steps=terms.warmup_steps,
                chosen=True,
            )
        except OrderRefused as refused:
            return OrderRejected(_REASONS.get(refused.reason, Reason.NOT_POLLING), refused.message, now_unix_ns)
        self.take_up(capture)
        return None

    def take_up(self, capture: ProcessCapture) -> None:
        """The process has the order of this capture, placed now or before a restart."""
        self._holders[capture.terms.process_id] = capture.terms.capture_id

    def holds(self, capture: ProcessCapture) -> bool:
        """Tells whether the latest order of the process is this capture's."""
        return self._holders.get(capture.terms.process_id) == capture.terms.capture_id

    def withdraw(self, capture: ProcessCapture) -> None:
        """Takes the order back if it was not delivered."""
        if self.holds(capture):
            self._processes.withdraw_order(capture.terms.process_id)

    def cancel_in_process(self, capture: ProcessCapture) -> None:
        """Has the agent drop what Kineto has of this capture."""
        if self.holds(capture):
            terms = capture.terms
            self._processes.send_to_agent(terms.process_id, "cancel", **cancel_command(terms))

    def tell_done(self, capture: ProcessCapture, after_ns: int) -> None:
        """Lets the agent rest after `after_ns`."""
        if self.holds(capture):
            self._processes.send_to_agent(
                capture.terms.process_id, "done", capture=capture.terms.capture_id, after_ns=after_ns
            )


def find_occupant(captures: Iterable[ProcessCapture], process_id: str, now_unix_ns: int) -> str:
    """The id of the capture that has Kineto's only slot in this process, "" when it is free.

    A second config would be dropped without a word, so a cancelled window that could not be stopped counts too.
    """
    for capture in captures:
        terms = capture.terms
        if terms.process_id != process_id:
            continue
        if capture.awaits_file:
            return terms.capture_id
        unstopped = capture.state == RankState.FAILED and capture.armed_unix_ns and not capture.written_unix_ns
        free_unix_ns = (window_end_unix_ns(terms) or 0) + _WINDOW_MARGIN_NS
        if capture.own_profile_unix_ns and not capture.dropped_by_agent:
            # PyTorch 2.13 keeps an order that has not begun: the agent drops it after the job's own profile.
            free_unix_ns = capture.failed_unix_ns + _OWN_PROFILE_NS
        if unstopped and now_unix_ns < free_unix_ns:
            return terms.capture_id
    return ""
