"""A thread that sleeps on a socket of its own until somebody asks where this process is.

It answers while the main thread is blocked: in C code that lets the interpreter go, in a sleep, in a lock. An extension
that keeps the interpreter keeps this thread from answering as well; the sidecar says so then.

Guarantees: no processor time until asked; no signal is handled in it; it never answers a forked child's question; what
goes wrong in it ends it, and reaches nobody.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from typing import Any, Callable

from fleetprof_agent import wire
from fleetprof_agent.capture.capture_thread import FAULTS
from fleetprof_agent.channel import Channel
from fleetprof_agent.errors import pass_on, report_error
from fleetprof_agent.process import identity
from fleetprof_agent.samples.frames import read_stack
from fleetprof_agent.samples.stacks import StackTable, clean
from fleetprof_agent.stacks.calls import find_call
from fleetprof_agent.stacks.flight_recorder import read_collectives, send_collectives
from fleetprof_agent.steps.ring import MASK, StepRing

SLEEP_S = 3600.0
JOIN_S = 0.2
MOST_THREADS = 200
NAME_CHARACTERS = 60
COLUMNS = ("name", "task", "is_main", "stack", "call")
SEND_TRIES = 50
SEND_AGAIN_S = 0.01
LEAST_PAUSE_S = 0.2  # between two answers: a sidecar that asks without end costs no more than this


class StackListener:
    """The listener of one process.

    `channel` is the agent's: answers go through it; `hello()` sends who this is once more.
    """

    def __init__(self, directory: str, channel: Channel, ring: StepRing, hello: Callable[[], Any]) -> None:
        """Raises OSError when the socket cannot be made."""
        self._questions = Channel(directory, wire.LISTENER_SOCKET_PREFIX, channel.token)
        self._answers = channel
        self._ring = ring
        self._hello = hello
        self._has_ended = False
        self._run = 0  # the number of the thread that may go on; 0: none
        self._runs = 0
        self._ended = _thread.allocate_lock()  # held by the thread

    def start(self) -> None:
        """Begins to listen."""
        if not self._run and not self._has_ended:
            self._runs += 1
            self._run = self._runs
            # Not by `threading`: a job that waits until it has one thread alone would wait for this one.
            _thread.start_new_thread(self._listen, (self._run,))

    def rest(self) -> None:
        """The thread ends until `start`: the job's own profile records stacks."""
        if self._run:
            self._run = 0
            self._questions.wake()
            if self._ended.acquire(timeout=JOIN_S):
                self._ended.release()

    def end(self) -> None:
        """The process ends."""
        self._has_ended = True
        self.rest()
        self._questions.close()

    def abandon(self) -> None:
        """In a forked child: the thread and the socket's path are the parent's."""
        self._has_ended = True
        self._run = 0
        self._questions.close()

    def _listen(self, run: int) -> None:
        with self._ended:
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - FAULTS)
                while self._run == run:
                    self._questions.wait(SLEEP_S)
                    for command in self._questions.receive():
                        question = command.get("query")
                        if isinstance(question, str) and 0 < len(question) <= 64 and self._run == run:
                            self._answer(question)
                            time.sleep(LEAST_PAUSE_S)
            except Exception as error:
                pass_on(error)
                report_error()

    def _answer(self, question: str) -> None:
        def send(kind: str, **fields: Any) -> bool:
            # The kernel queues ten datagrams for a sidecar, and all its ranks answer at once.
            for _ in range(SEND_TRIES):
                if self._answers.send(kind, query=question, **fields):
                    return True
                time.sleep(SEND_AGAIN_S)
            return False

        self._hello()  # a sidecar that was restarted meanwhile knows nobody who makes no step
        table = StackTable()
        rows = self._look(table)
        table.forget_code()
        table.flush(send)
        try:
            send_collectives(read_collectives(identity.loaded("torch")), send)
        except Exception as error:  # the stacks without them
            pass_on(error)
        ring = self._ring
        last = (ring.count - 1) & MASK
        steps = {"step": ring.step[last], "step_unix_ns": ring.end_unix_ns[last]} if ring.count else {}
        columns = {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}
        send("threads", at_unix_ns=time.time_ns(), **steps, **columns)

    def _look(self, table: StackTable) -> list[tuple[str, int, bool, int, str]]:
        """Name, id at the kernel, whether it is the main one, stack, call of each thread with a stack of the job's."""
        known = dict(threading._active)  # type: ignore[attr-defined]
        main, own = threading.main_thread().ident, threading.get_ident()
        rows = []
        idents = sorted(sys._current_frames(), key=lambda ident: ident != main)[:MOST_THREADS]
        for ident in idents:
            frames = read_stack(ident) if ident != own else []
            stack = table.intern(frames)
            if stack is None:
                continue
            is_main = ident == main
            call = clean(find_call(*frames[0])) if is_main else ""
            thread = known.get(ident)
            name = clean(str(getattr(thread, "name", ""))[:NAME_CHARACTERS])
            rows.append((name, int(getattr(thread, "native_id", 0) or 0), is_main, stack, call))
        return rows
