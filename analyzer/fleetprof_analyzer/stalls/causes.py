"""The table of causes that hold a rank up: the first one that fits counts.

Each row has its words, its evidence and the next step. Evidence is a stack or the kernel's word on the process; a stack
that fits no row is shown as it is. Each name has its row in docs/hangs.md.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_analyzer.stalls.ranks import StalledRank, is_library
from fleetprof_analyzer.stalls.waits import Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCause:
    """`says` follows "it" or "each"; `fits` tells whether a rank's evidence is this cause's.

    `may_go_on`: a healthy job may look alike while it works for long. `is_proven`: none looks alike, not even at its
    start.
    """

    name: str
    says: str
    advice: str
    fits: Callable[[StalledRank], bool]
    may_go_on: bool = False
    is_proven: bool = False


def _in_files(*ends: str) -> Callable[[StalledRank], bool]:
    return lambda rank: rank.is_in(*ends)


def _dead_worker(rank: StalledRank) -> bool:
    """One has ended, or the loader waits for workers of which there is none."""
    children = rank.process.children
    if children is None or not rank.is_in(*_LOADER, *_PIPES):
        return False
    has_workers = any(place.function.endswith(_LOADER_WAITS) for place in rank.frames)
    dead = [child.state in ("Z", "X") for child in children]
    return any(dead) or (has_workers and not children)


def _stopped_worker(rank: StalledRank) -> bool:
    return rank.is_in(*_LOADER, *_PIPES) and any(child.state in ("T", "t") for child in rank.process.children or ())


def _waits(*kinds: Wait) -> Callable[[StalledRank], bool]:
    return lambda rank: rank.wait in kinds


def _evaluates(rank: StalledRank) -> bool:
    """It computes in a function whose name says so."""
    own = (place for place in rank.frames if "/torch/" not in place.file)
    return rank.computes and any(_EVALUATION.search(place.function.rpartition(".")[2]) for place in own)


def _asks_store(rank: StalledRank) -> bool:
    return rank.is_in(*_STORES) or (rank.main is not None and bool(_STORE_CALL.search(rank.main.call)))


def _waits_for_message(rank: StalledRank) -> bool:
    """By the recorder, which has none of gloo's receives, or by a function's name."""
    in_call = any(place.function in _MESSAGES and place.file.endswith(_COLLECTIVES) for place in rank.frames)
    return (bool(rank.messages) or in_call) and _waits_for_ranks(rank)


def _waits_for_ranks(rank: StalledRank) -> bool:
    return rank.is_in(*_COLLECTIVES) and not rank.computes


def _sleeps(rank: StalledRank) -> bool:
    """Its innermost frame is the job's own, and the thread takes no processor time: a sleep, a read, a call into C."""
    return bool(rank.frames) and not is_library(rank.frames[0]) and not rank.computes


def _keeps_interpreter(rank: StalledRank) -> bool:
    """Its agent does not answer, while it runs or waits for something that is no other thread: no free interpreter."""
    process = rank.process
    is_elsewhere = rank.wait is not None and rank.wait is not Wait.OTHER_THREAD
    return process.has_agent and not process.has_answered and (rank.computes or is_elsewhere)


def _own_line_waits(rank: StalledRank, kind: Wait) -> bool:
    return rank.wait is kind and bool(rank.frames) and not is_library(rank.frames[0])


_LOADER: Final = ("torch/utils/data/dataloader.py",)
_DEBUGGERS: Final = ("/pdb.py", "/bdb.py", "/ipdb/__main__.py", "/IPython/core/debugger.py", "/debugpy/server/api.py")
_STORES: Final = (
    "torch/distributed/rendezvous.py",
    "torch/distributed/elastic/rendezvous/api.py",
    "torch/distributed/elastic/utils/store.py",
)
_CHECKPOINTS: Final = ("torch/serialization.py", "torch/distributed/checkpoint/state_dict_saver.py")
_LOADER_WAITS: Final = ("_try_get_data", "_get_data")
_STORE_CALL: Final = re.compile(r"(^|[._])store\.(get|wait|check|set|add|multi_get|queue_pop)$", re.IGNORECASE)
_COLLECTIVES: Final = ("torch/distributed/distributed_c10d.py",)
_SLEEPS: Final = ("time.sleep", "sleep")
_MESSAGES: Final = frozenset({"send", "recv", "isend", "irecv", "send_object_list", "recv_object_list"})
_EVALUATION: Final = re.compile(r"(^|_)(eval|evaluate|evaluation|validate|validation)($|_)", re.IGNORECASE)
_CHILDREN: Final = ("/subprocess.py", "/multiprocessing/popen_fork.py", "/multiprocessing/popen_spawn_posix.py")
_EVENT_LOOPS: Final = ("/asyncio/base_events.py", "/uvloop/loop.pyx", "/trio/_core/_run.py")
_PIPES: Final = ("/multiprocessing/connection.py", "/multiprocessing/queues.py")
_LOCKS: Final = ("/threading.py", "/queue.py", "/multiprocessing/synchronize.py")
_SOCKETS: Final = ("/socket.py", "/ssl.py", "/http/client.py", "urllib3/connection.py", "/selectors.py")
_COMPILERS: Final = ("torch/_dynamo/eval_frame.py", "torch/_inductor/compile_fx.py", "torch/_dynamo/convert_frame.py")

CAUSES: Final[Sequence[StallCause]] = (
    StallCause(
        name="stopped",
        says="is stopped by a signal",
        advice="let it go on (kill -CONT) or end it; a debugger or a job scheduler may have stopped it",
        fits=lambda rank: rank.is_stopped,
        is_proven=True,
    ),
    StallCause(
        name="interpreter_held",
        says="is in native code that keeps Python's interpreter",
        advice="look at it with `py-spy dump --native`: its Python stack cannot be read while the interpreter is held",
        fits=_keeps_interpreter,
    ),
    StallCause(
        name="debugger",
        says="waits at a debugger's prompt",
        advice="remove breakpoint() from the code that runs without a terminal",
        fits=lambda rank: rank.is_in(*_DEBUGGERS),
        is_proven=True,
    ),
    StallCause(
        name="loader_worker_died",
        says="waits for a worker process that has ended",
        advice="look for why the worker ended: memory (the kernel's log), a signal, an exception in the dataset",
        fits=_dead_worker,
        is_proven=True,
    ),
    StallCause(
        name="loader_worker_stopped",
        says="waits for a worker process that is stopped by a signal",
        advice="let the worker go on (kill -CONT) or end it",
        fits=_stopped_worker,
        is_proven=True,
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
        fits=_asks_store,
    ),
    StallCause(
        name="message",
        says="waits for a rank to send or to receive",
        advice="let each send have its receive on the other rank, in the same order",
        fits=_waits_for_message,
    ),
    StallCause(
        name="other_collective",
        says="waits for other ranks in another call of torch.distributed",
        advice="let all ranks make the same calls in the same order",
        fits=_waits_for_ranks,
    ),
    StallCause(
        name="child_process",
        says="waits for the end of a child process",
        advice="look at what that process does, and give the wait a timeout",
        fits=lambda rank: rank.wait is Wait.CHILD or (rank.is_in(*_CHILDREN) and not rank.computes),
    ),
    StallCause(
        name="event_loop",
        says="waits in an event loop none of whose tasks can go on",
        advice="look at what its tasks wait for, and give that a timeout",
        fits=lambda rank: rank.is_in(*_EVENT_LOOPS) and not rank.computes,
    ),
    StallCause(
        name="lock",
        says="waits for a lock, a queue or another thread",
        advice="look at the stacks of its other threads (--all-threads) and at who should release it or put into it",
        fits=lambda rank: not rank.computes and (rank.is_in(*_LOCKS) or _own_line_waits(rank, Wait.OTHER_THREAD)),
    ),
    StallCause(
        name="file_lock",
        says="waits for the lock of a file",
        advice="see who holds it (`lslocks`, or the file server's own tool), and give the wait a timeout",
        fits=_waits(Wait.FILE_LOCK),
    ),
    StallCause(
        name="pipe",
        says="waits for the other end of a pipe",
        advice="look at the process that should write into it, or read from it",
        fits=lambda rank: not rank.computes and (rank.is_in(*_PIPES) or rank.wait is Wait.PIPE),
    ),
    StallCause(
        name="network_read",
        says="waits for data from a socket",
        advice="set a timeout for this request; look at the server that it asks",
        fits=lambda rank: not rank.computes and (rank.is_in(*_SOCKETS) or rank.wait is Wait.SOCKET),
    ),
    StallCause(
        name="file_system",
        says="waits for a file system",
        advice="look at the disk or the file server behind this file (the node's kernel log, `nfsstat`)",
        fits=lambda rank: rank.wait is Wait.FILE_SYSTEM or rank.process.state == "D",
    ),
    StallCause(
        name="sleeps",
        says="sleeps",
        advice="look at what this line sleeps for: a retry that never succeeds, a poll, or a pause that is too long",
        fits=lambda rank: rank.wait is Wait.SLEEP or (rank.call in _SLEEPS and not rank.computes),
    ),
    StallCause(
        name="evaluation",
        says="evaluates, by the name of a function on its stack",
        advice="wait for it; let all ranks evaluate, or let the others wait with a timeout that is long enough",
        fits=_evaluates,
        may_go_on=True,
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
