"""Asks sidecars for the stacks of their processes, and hands on what they answer while somebody waits for it.

Guarantees: an answer counts from a sidecar that was asked, once for each process that it has; nothing is kept after
the question; the wait is bounded, whoever does not answer; a namespace has one question at a time, so that no sidecar
misses one and no tenant takes the others' turns; what all answers of a question take is bounded (MOST_BYTES), and of a
large job main threads alone are kept.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.stacks import ProcessStacks, UnreadableStacks, read_stacks

from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord, SidecarRegistry
from fleetprof_operator.hub.submission import CaptureRefused, make_uid

PATIENCE_S: Final = 3.0
PATIENCE_PER_PROCESS_S: Final = 4e-3  # to read what comes, on a busy machine too
MOST_QUESTIONS: Final = 4  # at once
MOST_BYTES: Final = 32 << 20  # of all answers to one question
_MOST_FRAMES: Final = 100  # of a main thread whose answer is larger than its share
_MOST_COLLECTIVES: Final = 32
_LEAST_SHARE: Final = 32 << 10
BUSY: Final = "TooManyQuestions"


@dataclass(slots=True)
class _Question:
    sidecars: dict[str, SidecarRecord]
    awaited: set[tuple[str, str]]  # sidecar, process
    share_bytes: int  # of each process
    namespaces: frozenset[str]
    answers: asyncio.Queue[tuple[str, ProcessStacks]] = field(default_factory=asyncio.Queue)


class StackQuestions:
    """The questions under way, over the registry of sidecars."""

    def __init__(self, registry: SidecarRegistry) -> None:
        self._registry = registry
        self._questions: dict[str, _Question] = {}
        self._ended = asyncio.Event()

    def choose(self, namespace: str, workload: str) -> list[SidecarRecord]:
        """The connected sidecars of a job by its name; of all jobs where it is empty."""
        return [one for one in self._registry.list() if one.link is not None and _is_meant(one, namespace, workload)]

    async def ask(self, sidecars: Sequence[SidecarRecord]) -> AsyncIterator[tuple[SidecarRecord, ProcessStacks]]:
        """The processes of these sidecars, as they answer; of those that do not, what is known of them.

        Raises CaptureRefused when too many ask.
        """
        while len(self._questions) >= MOST_QUESTIONS or self._has_question(sidecars):
            if len(self._questions) >= MOST_QUESTIONS:
                text = f"{MOST_QUESTIONS} questions for stacks are under way; ask again in a moment"
                raise CaptureRefused(BUSY, text)
            self._ended.clear()
            await self._ended.wait()
        chosen = {record.sidecar_id: record for record in sidecars}
        awaited = {(one, process_id) for one, record in chosen.items() for process_id in record.processes}
        uid = make_uid()
        namespaces = frozenset(record.identity.namespace for record in sidecars)
        question = _Question(chosen, awaited, MOST_BYTES // max(1, len(awaited)), namespaces)
        self._questions[uid] = question
        try:
            for record in chosen.values():
                if record.link is not None:
                    record.link.send(pb.HubMessage(read_stacks=pb.ReadStacks(question=uid)))
            try:
                async with asyncio.timeout(PATIENCE_S + PATIENCE_PER_PROCESS_S * len(awaited)):
                    while question.awaited or not question.answers.empty():
                        sidecar_id, process = await question.answers.get()
                        yield chosen[sidecar_id], _place(chosen[sidecar_id], process)
            except TimeoutError:
                for sidecar_id, process_id in sorted(question.awaited):
                    record = chosen[sidecar_id]
                    if known := record.processes.get(process_id):
                        yield record, _place(record, _describe(known))
        finally:
            del self._questions[uid]
            self._ended.set()

    def take(self, answer: pb.StacksAnswer, record: SidecarRecord) -> None:
        """A sidecar's answer about one of its processes; nobody hears one that was not asked for."""
        question = self._questions.get(answer.question)
        if question is None or record.sidecar_id not in question.sidecars:
            return
        line = record.sidecar_id, answer.process_id
        if line not in question.awaited:
            return
        try:
            process = read_stacks(answer.stacks_json)
        except UnreadableStacks:
            return  # as if it had not answered
        if process.process_id != answer.process_id:
            return
        if len(answer.stacks_json) > question.share_bytes:
            process = shorten(process)
            if len(msgspec.json.encode(process)) > max(question.share_bytes, _LEAST_SHARE):
                return
        question.awaited.discard(line)
        question.answers.put_nowait((record.sidecar_id, process))

    def _has_question(self, sidecars: Iterable[SidecarRecord]) -> bool:
        namespaces = {one.identity.namespace for one in sidecars}
        return any(not namespaces.isdisjoint(question.namespaces) for question in self._questions.values())


def shorten(process: ProcessStacks) -> ProcessStacks:
    """The same with its main thread alone: its innermost frames, and its latest collectives."""
    main = next((thread for thread in process.threads if thread.is_main), None)
    frames = main.stack[:_MOST_FRAMES] if main is not None else []
    places = [process.places[place] for place in frames]
    threads = [] if main is None else [msgspec.structs.replace(main, stack=list(range(len(frames))))]
    latest = process.collectives[-_MOST_COLLECTIVES:]
    return msgspec.structs.replace(process, places=places, threads=threads, collectives=latest)


def name_workload(record: SidecarRecord) -> str:
    """The job that a sidecar belongs to, as KIND/NAME; without one its pod."""
    workload = record.identity.workload
    return f"{workload.kind}/{workload.name}" if workload.name else record.identity.pod_name


def _is_meant(record: SidecarRecord, namespace: str, workload: str) -> bool:
    identity = record.identity
    names = (identity.workload.name, f"{identity.workload.kind}/{identity.workload.name}", identity.pod_name)
    return namespace in ("", identity.namespace) and (not workload or workload in names)


def _place(record: SidecarRecord, process: ProcessStacks) -> ProcessStacks:
    """Says where it is, by the hub's own knowledge: a sidecar's word about that was proved when it came."""
    identity = record.identity
    process.node, process.pod = identity.node_name or identity.host_name, identity.pod_name
    known = record.processes.get(process.process_id)
    if known is not None and known.HasField("rank"):
        process.rank = known.rank
    return process


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
