"""Any profiler in a trainer as the sidecar sees it: order, start at a step or a time, state, file, cancel.

Kineto is the first (`sockets/kineto_profiler.py`). Guarantees: nothing else of the sidecar's side of an order knows
which profiler takes it. A process asks for orders (`Poll`), which says by itself whether it is busy; an order that was
not handed over is taken back, and what a process has taken its agent drops (`cancel` of the agent's wire format).
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fleetprof_api.profiler import ProfilerFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStart:
    """A window of `steps` optimizer steps whose first whole one is `first_step` in the process's own count.

    `steps` is training iterations times optimizer steps per iteration, and so is `warmup_steps`.
    """

    first_step: int
    steps: int
    warmup_steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStart:
    """A window of `duration_ms` that begins at `start_unix_ms`."""

    start_unix_ms: int
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOrder:
    """One trace of one process. `output` is the path that the profiler is told, for `read_name` to know."""

    output: str
    trace_id: str
    start: StepStart | TimeStart
    collect: Collection[str] = ()
    activities: Collection[str] = ()
    device_kind: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The kernel's word on a datagram's sender (SCM_CREDENTIALS). pid 0: in a pid namespace not visible from here."""

    pid: int
    uid: int


class Poll(Protocol):
    """A process asks for an order. `pids`: its own and then its ancestors', in its own pid namespace."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Its pid, and those above it."""

    @property
    def idle(self) -> bool:
        """Tells whether it would take an order now."""


class PollTaker(Protocol):
    """The sidecar's processes, who take polls."""

    def record_poll(
        self, address: str, request: Poll, credentials: Credentials, send: Callable[[str], bool], waited_ns: int = 0
    ) -> None:
        """Calls `send` once, with an order's text or with ""; the poll came `waited_ns` ago."""


class Listener(Protocol):
    """Hears the polls of one directory's processes, and answers them."""

    counters: Counter[str]

    def start(self) -> None:
        """Raises OSError."""

    def stop(self) -> None:
        """May be repeated."""


@dataclass(frozen=True, slots=True)
class TraceName:
    """A file's name as the profiler gives it: the order's trace id, the process, and whether the file is whole."""

    stem: str
    pid: int
    is_finished: bool


class Profiler(Protocol):
    """One kind of profiler."""

    @property
    def facts(self) -> ProfilerFacts:
        """The facts that planning must know of it."""

    def write_order(self, order: TraceOrder) -> str:
        """The text that a process is given. Raises ValueError naming the field that breaks a rule."""

    def latest_delivery_unix_ns(self, start: TimeStart, device_kind: str) -> int:
        """After this moment an order for a window by time would be refused."""

    def listen(self, directory: str, polls: PollTaker, allowed_uids: frozenset[int] | None) -> Listener:
        """Makes what hears the processes of a directory; `allowed_uids`: of these users alone."""

    def read_name(self, name: str) -> TraceName | None:
        """The kind of a file of the traces directory; None: none of this profiler's."""

    def find_stray(self, elsewhere: Path, traces: Path, pid: int, since_unix_ns: int) -> str:
        """A sentence if it wrote elsewhere than asked since then, or ""."""
