"""Asks sidecars for the stacks of their processes, and hands on what they answer while somebody waits for it.

Guarantees: an answer counts from a sidecar that was asked, once for each process that it has; nothing is kept after
the question; the wait is bounded, whoever does not answer.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.stacks import ProcessStacks, UnreadableStacks, read_stacks

from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord, SidecarRegistry
from fleetprof_operator.hub.submission import CaptureRefused, make_uid

PATIENCE_S: Final = 3.0
MOST_QUESTIONS: Final = 4  # at once
BUSY: Final = "TooManyQuestions"


@dataclass(slots=True)
class _Question:
    sidecars: dict[str, SidecarRecord]
    awaited: set[tuple[str, str]]  # sidecar, process
    answers: asyncio.Queue[tuple[str, ProcessStacks]] = field(default_factory=asyncio.Queue)


class StackQuestions:
    """The questions under way, over the registry of sidecars."""

    def __init__(self, registry: SidecarRegistry) -> None:
        self._registry = registry
        self._questions: dict[str, _Question] = {}

    async def ask(self, namespace: str, workload: str) -> AsyncIterator[pb.StacksReply]:
        """The processes of the sidecars that are meant, as they answer; of those that do not, what is known of them.

        Raises CaptureRefused when too many ask.
        """
        if len(self._questions) >= MOST_QUESTIONS:
            raise CaptureRefused(BUSY, f"{MOST_QUESTIONS} questions for stacks are under way; ask again in a moment")
        there = [record for record in self._registry.list() if record.link is not None]
        chosen = {record.sidecar_id: record for record in there if _is_meant(record, namespace, workload)}
        awaited = {(one, process_id) for one, record in chosen.items() for process_id in record.processes}
        uid = make_uid()
        self._questions[uid] = question = _Question(chosen, awaited)
        try:
            for record in chosen.values():
                if record.link is not None:
                    record.link.send(pb.HubMessage(read_stacks=pb.ReadStacks(question=uid)))
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while question.awaited or not question.answers.empty():
                        sidecar_id, process = await question.answers.get()
                        yield _reply(chosen[sidecar_id], process)
            except TimeoutError:
                for sidecar_id, process_id in sorted(question.awaited):
                    record = chosen[sidecar_id]
                    if known := record.processes.get(process_id):
                        yield _reply(record, _describe(known))
        finally:
            del self._questions[uid]

    def take(self, answer: pb.StacksAnswer, record: SidecarRecord) -> None:
        """A sidecar's answer about one of its processes; nobody hears one that was not asked for."""
        question = self._questions.get(answer.question)
        if question is None or record.sidecar_id not in question.sidecars:
            return
        try:
            process = read_stacks(answer.stacks_json)
        except UnreadableStacks:
            return  # as if it had not answered
        line = record.sidecar_id, answer.process_id
        if line in question.awaited and process.process_id == answer.process_id:
            question.awaited.discard(line)
            question.answers.put_nowait((record.sidecar_id, process))


def _is_meant(record: SidecarRecord, namespace: str, workload: str) -> bool:
    identity = record.identity
    names = (identity.workload.name, f"{identity.workload.kind}/{identity.workload.name}", identity.pod_name)
    return namespace in ("", identity.namespace) and (not workload or workload in names)


def _reply(record: SidecarRecord, process: ProcessStacks) -> pb.StacksReply:
    identity = record.identity
    # Where it is, by the hub's own knowledge: a sidecar's word about that was proved when it came.
    process.node, process.pod = identity.node_name or identity.host_name, identity.pod_name
    known = record.processes.get(process.process_id)
    if known is not None and known.HasField("rank"):
        process.rank = known.rank
    workload = f"{identity.workload.kind}/{identity.workload.name}" if identity.workload.name else identity.pod_name
    return pb.StacksReply(stacks_json=msgspec.json.encode(process).decode(), workload=workload)


def _describe(process: pb.Process) -> ProcessStacks:
    return ProcessStacks(
        process_id=process.process_id,
        pid=process.pid,
        world_size=process.world_size if process.HasField("world_size") else None,
        is_trainer=process.role == pb.TRAINER,
        has_agent=process.has_agent,
        step=process.step.step if process.HasField("step") else None,
        step_unix_ns=process.step.at_unix_ns if process.HasField("step") else None,
        iteration_ns=process.step.iteration_ns,
    )
