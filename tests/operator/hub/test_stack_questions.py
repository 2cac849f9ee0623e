"""A question for stacks over real streams: each process of the job answers, or is told of as far as it is known."""

import asyncio
from typing import Any

import grpc
import msgspec
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_api.stacks import ProcessStacks, UnreadableStacks, read_stacks


async def ask(ground: Any, workload: str = "") -> list[tuple[str, ProcessStacks]]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ground.server.port}") as channel:
        metadata = (("authorization", "Bearer a-token-for-tests"),)
        replies = CapturesStub(channel).Stacks(pb.StacksRequest(workload=workload), metadata=metadata)
        return [(reply.workload, read_stacks(reply.stacks_json)) async for reply in replies]


def write_stacks(process_id: str, **fields: Any) -> str:
    return msgspec.json.encode(ProcessStacks(process_id=process_id, pid=1, has_answered=True, **fields)).decode()


async def test_answers_come_with_what_the_hub_knows_of_the_process(ground: Any, kit: Any) -> None:
    first = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    second = await ground.add_sidecar(1, kit.make_process(2))
    asking = asyncio.create_task(ask(ground, "Job/llama"))
    question = (await first.expect("read_stacks")).question
    await second.expect("read_stacks")
    for sidecar, process_id, text in (
        (second, "p0", write_stacks("p0", state="another's")),  # not a process of this sidecar
        (first, "p0", "not JSON"),
        (first, "p0", write_stacks("p1", state="of another process")),
        (first, "p0", write_stacks("p0", rank=77, pod="forged", state="S")),
        (first, "p0", write_stacks("p0", state="again")),
    ):
        answer = pb.StacksAnswer(question=question, process_id=process_id, stacks_json=text)
        await sidecar.call.write(pb.SidecarMessage(stacks=answer))
    answers = await asking
    assert {workload for workload, _ in answers} == {"Job/llama"}
    found = {process.process_id: process for _, process in answers}
    assert [(p.rank, p.has_answered, p.state) for p in map(found.__getitem__, ("p0", "p1", "p2"))] == [
        (0, True, "S"),
        (1, False, ""),
        (2, False, ""),
    ]
    assert found["p0"].pod != "forged"
    assert await ask(ground, "Job/other") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "truncated"),
        ('{"process_id": "p", "pid": 1, "threads": [{"name": "", "task": 0, "is_main": true, "stack": [3]}]}', "place"),
        ('{"process_id": "p", "pid": 1, "state": "\\u001b[2J"}', "printed"),
        (" " * 400_001, "400000"),
    ],
)
def test_what_is_no_process_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnreadableStacks, match=problem):
        read_stacks(text)
