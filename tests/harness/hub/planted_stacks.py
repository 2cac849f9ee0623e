"""Answers of a job of two ranks in which rank 1 hangs, and a scripted sidecar that gives them."""

from typing import Any

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks, RecordedCollective, ThreadStack

from harness.hub.scripted_sidecar import ScriptedSidecar

SECOND = 10**9
SAYS = "Rank 1 has not entered all_reduce 3 of group 0 default_pg: it is blocked in a call (train.py:7 hang)."


def make_answer(process_id: str, frames: list[tuple[str, str, int]], sequence: int, **fields: Any) -> ProcessStacks:
    """A rank that waits in the third all_reduce, or has not come so far; its frames are innermost first."""
    reduce = RecordedCollective(
        group="0 default_pg", sequence=sequence, name="all_reduce", is_p2p=False, sizes="[[4]]", is_over=sequence < 3,
        created_unix_ns=100 * SECOND, ranks="0-1",
    )  # fmt: skip
    places = [CodePlace(file=file, function=function, line=line) for file, function, line in frames]
    given: dict[str, Any] = {
        "pid": 1, "world_size": 2, "is_trainer": True, "has_agent": True, "has_answered": True, "state": "S",
        "busy_permille": 0, "at_unix_ns": 100 * SECOND, "step": 5, "step_unix_ns": 40 * SECOND, "places": places,
        "threads": [ThreadStack(name="MainThread", task=1, is_main=True, stack=list(range(len(places))))],
        "collectives": [reduce],
    }  # fmt: skip
    return ProcessStacks(process_id=process_id, **(given | fields))


WAITS = make_answer("p0", [("/x/site-packages/torch/distributed/distributed_c10d.py", "all_reduce", 9)], 3)
HANGS = make_answer("p1", [("/job/train.py", "hang", 7)], 2)


async def answer(sidecar: ScriptedSidecar, *processes: ProcessStacks) -> None:
    """Waits for a question, and answers it for these processes."""
    question = (await sidecar.expect("read_stacks")).question
    for process in processes:
        text = msgspec.json.encode(process).decode()
        message = pb.StacksAnswer(question=question, process_id=process.process_id, stacks_json=text)
        await sidecar.call.write(pb.SidecarMessage(stacks=message))
