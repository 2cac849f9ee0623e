"""Asks the agents here for their stacks when the hub does, and sends what they and the kernel say.

Guarantees: an answer for each process within `_PATIENCE_S`, also of one that does not answer; one question at a time,
and a hub that asks too often is not heard; nothing here waits for a process.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2
from fleetprof_api.stacks import MOST_BYTES, ProcessStacks

from fleetprof_sidecar.hub.outbox import HubSender
from fleetprof_sidecar.processes.events import AgentMessage, ProcessEvent
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.stacks.answers import KINDS, AgentAnswer
from fleetprof_sidecar.stacks.kernel_view import KernelView, find_children, look_at_main_thread

_PATIENCE_S: Final = 1.5
_LEAST_LOOK_S: Final = 0.3  # the kernel counts processor time in hundredths of a second

log = logging.getLogger(__name__)


class StackCollector:
    """For one event loop. `ask_agents` sends a question to all of them."""

    def __init__(self, table: ProcessTable, ask_agents: Callable[[str], int], hub: HubSender) -> None:
        self._table = table
        self._ask = ask_agents
        self._hub = hub
        self._question = ""
        self._answers: dict[str, AgentAnswer] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ask(self, question: str) -> None:
        """Begins to answer, unless the question before is still being answered."""
        if self._task is not None and not self._task.done():
            return
        self._question, self._answers = question, {}
        self._task = asyncio.create_task(self._answer(question))

    def on_process_event(self, event: ProcessEvent) -> None:
        """Takes what an agent says to the question under way."""
        if not isinstance(event, AgentMessage) or event.fields["t"] not in KINDS:
            return
        if self._question and event.fields.get("query") == self._question:
            self._answers.setdefault(event.process_id, AgentAnswer()).take(event.fields)
            self._news.set()

    async def close(self) -> None:
        """Ends what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _answer(self, question: str) -> None:
        try:
            await self._gather(question)
        except Exception:
            log.exception("a question for stacks could not be answered")
        finally:
            self._question = ""

    async def _gather(self, question: str) -> None:
        began = time.monotonic_ns()
        before = {one.process_id: look_at_main_thread(one.visible_pid) for one in self._table.whereabouts()}
        self._ask(question)
        await asyncio.sleep(_LEAST_LOOK_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S - _LEAST_LOOK_S):
                while self._is_awaited():
                    self._news.clear()
                    await self._news.wait()
        pids = {where.process_id: where.visible_pid for where in self._table.whereabouts()}
        for view in self._table.snapshot():
            process = _describe(view)
            pid = pids.get(view.process_id, 0)
            after, passed = look_at_main_thread(pid), time.monotonic_ns() - began
            process.state, process.waits_in, process.children = after.state, after.waits_in, find_children(pid)
            ran_ns = before.get(view.process_id, KernelView()).ran_ns
            if after.ran_ns is not None and ran_ns is not None:
                process.busy_permille = min(1000, max(0, (after.ran_ns - ran_ns) * 1000 // passed))
            if answer := self._answers.get(view.process_id):
                answer.write_into(process)
            self._send(question, process)

    def _is_awaited(self) -> bool:
        agents = [view.process_id for view in self._table.snapshot() if _can_answer(view)]
        return any((answer := self._answers.get(one)) is None or not answer.is_whole for one in agents)

    def _send(self, question: str, process: ProcessStacks) -> None:
        data = msgspec.json.encode(process)
        if len(data) > MOST_BYTES:
            process.threads = [thread for thread in process.threads if thread.is_main]
            data = msgspec.json.encode(process)
        answer = hub_pb2.StacksAnswer(question=question, process_id=process.process_id, stacks_json=data.decode())
        self._hub.send(hub_pb2.SidecarMessage(stacks=answer))


def _can_answer(view: ProcessView) -> bool:
    """Tells whether it has an agent, before its first step too, and is no launcher and no worker."""
    return view.has_agent or (view.agent_waits and view.role not in (Role.LAUNCHER, Role.WORKER))


def _describe(view: ProcessView) -> ProcessStacks:
    step = view.step
    return ProcessStacks(
        process_id=view.process_id,
        pid=view.pid,
        rank=view.rank,
        world_size=view.world_size,
        is_trainer=view.role is Role.TRAINER,
        has_agent=_can_answer(view),
        at_unix_ns=time.time_ns(),
        step=step.step if step is not None else None,
        step_unix_ns=step.at_unix_ns if step is not None else None,
        iteration_ns=step.iteration_ns if step is not None else 0,
    )
