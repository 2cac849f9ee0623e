"""The table of causes that hold a rank up: the first one that fits counts.

Each row has its words, its evidence and the next step. Evidence is a stack or the kernel's word on the process; a stack
that fits no row is shown as it is. Each name has its row in docs/hangs.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_analyzer.stalls.ranks import StalledRank, is_library


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCause:
    """`says` follows "it" or "each"; `fits` tells whether a rank's evidence is this cause's.

    `may_go_on`: a healthy job may look alike while it works for long.
    """

    name: str
    says: str
    advice: str
    fits: Callable[[StalledRank], bool]
    may_go_on: bool = False


def _in_files(*ends: str) -> Callable[[StalledRank], bool]:
    return lambda rank: rank.is_in(*ends)


def _dead_worker(rank: StalledRank) -> bool:
    return rank.is_in(*_LOADER) and any(child.state in ("Z", "X") for child in rank.process.children)


def _stopped_worker(rank: StalledRank) -> bool:
    return rank.is_in(*_LOADER) and any(child.state in ("T", "t") for child in rank.process.children)


def _sleeps(rank: StalledRank) -> bool:
    """Its innermost frame is the job's own, and the thread takes no processor time: a sleep, a read, a call into C."""
    return bool(rank.frames) and not is_library(rank.frames[0]) and not rank.computes


def _keeps_interpreter(rank: StalledRank) -> bool:
    process = rank.process
    return process.has_agent and not process.has_answered and rank.computes


_LOADER: Final = ("torch/utils/data/dataloader.py",)
_DEBUGGERS: Final = ("/pdb.py", "/bdb.py", "/ipdb/__main__.py", "/IPython/core/debugger.py", "/debugpy/server/api.py")
_STORES: Final = (
    "torch/distributed/rendezvous.py",
    "torch/distributed/elastic/rendezvous/api.py",
    "torch/distributed/elastic/utils/store.py",
)
_CHECKPOINTS: Final = ("torch/serialization.py", "torch/distributed/checkpoint/state_dict_saver.py")
_LOCKS: Final = ("/threading.py", "/queue.py", "/multiprocessing/synchronize.py")
_SOCKETS: Final = ("/socket.py", "/ssl.py", "/http/client.py", "urllib3/connection.py", "/selectors.py")
_COMPILERS: Final = ("torch/_dynamo/eval_frame.py", "torch/_inductor/compile_fx.py", "torch/_dynamo/convert_frame.py")

CAUSES: Final[Sequence[StallCause]] = (
    StallCause(
        name="stopped",
        says="is stopped by a signal",
        advice="let it go on (kill -CONT) or end it; a debugger or a job scheduler may have stopped it",
        fits=lambda rank: rank.is_stopped,
    ),
    StallCause(
        name="interpreter_held",
        says="runs in native code that keeps Python's interpreter",
        advice="look at it with `py-spy dump --native`: its Python stack cannot be read while the interpreter is held",
        fits=_keeps_interpreter,
    ),
    StallCause(
        name="debugger",
        says="waits at a debugger's prompt",
        advice="remove breakpoint() from the code that runs without a terminal",
        fits=lambda rank: rank.is_in(*_DEBUGGERS),
    ),
    StallCause(
        name="loader_worker_died",
        says="waits for a DataLoader worker that has ended",
        advice="look for why the worker ended: memory (the kernel's log), a signal, an exception in the dataset",
        fits=_dead_worker,
    ),
    StallCause(
        name="loader_worker_stopped",
        says="waits for a DataLoader worker that is stopped by a signal",
        advice="let the worker go on (kill -CONT) or end it",
        fits=_stopped_worker,
    ),
    StallCause(
        name="data_loading",
        says="waits for its data loading",
        advice="look at what the dataset reads: a file system or a server that does not answer",
        fits=_in_files(*_LOADER),
    ),
    StallCause(
        name="checkpoint",
        says="writes a checkpoint",
        advice="wait for it; if that takes long, look at the disk and write fewer or asynchronous checkpoints",
        fits=_in_files(*_CHECKPOINTS),
        may_go_on=True,
    ),
    StallCause(
        name="compilation",
        says="compiles",
        advice="wait for it; a shared compile cache (TORCHINDUCTOR_CACHE_DIR) spares the other ranks",
        fits=_in_files(*_COMPILERS),
        may_go_on=True,
    ),
    StallCause(
        name="rendezvous",
        says="waits for the rendezvous or its store",
        advice="check that MASTER_ADDR and MASTER_PORT answer from this node, and that all ranks have started",
        fits=_in_files(*_STORES),
    ),
    StallCause(
        name="lock",
        says="waits for a lock or a queue that another thread holds",
        advice="look at the stacks of its other threads below",
        fits=_in_files(*_LOCKS),
    ),
    StallCause(
        name="network_read",
        says="waits for an answer from the network",
        advice="set a timeout for this request; look at the server that it asks",
        fits=_in_files(*_SOCKETS),
    ),
    StallCause(
        name="loop",
        says="runs in Python code without end, or for long",
        advice="look at the loop at this line",
        fits=lambda rank: rank.computes,
        may_go_on=True,
    ),
    StallCause(
        name="blocked_in_line",
        says="is blocked in a call",
        advice="look at what this line waits for: a sleep, a file, a child process, a call into native code",
        fits=_sleeps,
    ),
    StallCause(
        name="elsewhere",
        says="is somewhere else",
        advice="look at its stack below",
        fits=lambda rank: bool(rank.frames),
        may_go_on=True,
    ),
    StallCause(
        name="silent",
        says="does not answer",
        advice="look at the process on its node: it may be stopped, or its interpreter be held (py-spy dump --native)",
        fits=lambda rank: True,
        may_go_on=True,
    ),
)


def find_cause(rank: StalledRank) -> StallCause:
    """The first cause that fits a rank; the last one fits all."""
    return next(cause for cause in CAUSES if cause.fits(rank))
