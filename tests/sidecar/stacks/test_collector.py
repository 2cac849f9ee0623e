"""A question for stacks: what agents and the kernel say becomes one answer for each process."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.stacks import ProcessStacks, RecordedCollective, read_stacks
from fleetprof_sidecar.processes.events import AgentMessage
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.stacks.answers import AgentAnswer
from fleetprof_sidecar.stacks.collector import StackCollector
from fleetprof_sidecar.stacks.kernel_view import find_children, look_at_main_thread

COLLECTIVE = {
    "group": "0 default_pg",
    "sequence": 3,
    "name": "all_reduce",
    "is_p2p": False,
    "sizes": "[[4]]",
    "is_over": False,
    "created_unix_ns": 7,
    "ranks": "0-1",
}
SAID: list[dict[str, Any]] = [
    {"t": "places", "first": 0, "file": ["a.py", "b.py"], "function": ["f", "g"], "line": [1, 2]},
    {"t": "stacks", "first": 0, "stacks": [[1, 0], [9, 0]]},
    {"t": "collectives", **{name: [value] for name, value in COLLECTIVE.items()}},
    {
        "t": "threads", "at_unix_ns": 9, "step": 4, "step_unix_ns": 8,
        "name": ["MainThread", "worker"], "task": [17, 18], "is_main": [True, False], "stack": [0, 1],
        "call": ["time.sleep", ""],
    },
]  # fmt: skip


def test_an_answer_in_any_order_and_with_datagrams_lost() -> None:
    whole, empty = ProcessStacks(process_id="p", pid=1), ProcessStacks(process_id="p", pid=1)
    answer = AgentAnswer()
    for fields in reversed(SAID):
        answer.take(fields)
    answer.write_into(whole)
    assert [(t.name, t.call, [whole.places[p].file for p in t.stack]) for t in whole.threads] == [
        ("MainThread", "time.sleep", ["b.py", "a.py"]),
        ("worker", "", ["a.py"]),
    ]
    assert (whole.step, whole.step_unix_ns, whole.has_answered) == (4, 8, True)
    assert whole.collectives == [RecordedCollective(**COLLECTIVE)]  # type: ignore[arg-type]
    lost = AgentAnswer()
    lost.take(SAID[-1])
    lost.write_into(empty)
    assert [thread.stack for thread in empty.threads] == [[], []]


class _Table:
    """One process that has an agent, and one that does not answer."""

    def snapshot(self) -> list[Any]:
        common: dict[str, Any] = {"pid": os.getpid(), "world_size": 2, "role": Role.TRAINER}
        return [
            SimpleNamespace(process_id=f"p{n}", rank=n, step=None, has_agent=n == 0, agent_waits=n == 1, **common)
            for n in range(2)
        ]

    def whereabouts(self) -> list[Any]:
        return [SimpleNamespace(process_id=f"p{n}", visible_pid=os.getpid()) for n in range(2)]


async def test_each_process_gets_an_answer_also_one_that_is_silent() -> None:
    sent: list[pb.SidecarMessage] = []
    questions: list[str] = []
    hub: Any = SimpleNamespace(send=sent.append)
    table: Any = _Table()

    def ask(question: str) -> int:
        questions.append(question)
        for fields in SAID:
            collector.on_process_event(AgentMessage("p0", {**fields, "query": question}))
        collector.on_process_event(AgentMessage("p1", {**SAID[-1], "query": "another"}))
        return 1

    collector = StackCollector(table, ask, hub)
    collector.ask("q")
    collector.ask("while it is answered")
    async with asyncio.timeout(30):
        while len(sent) < 2:
            await asyncio.sleep(0.05)
    await collector.close()
    first, second = [read_stacks(message.stacks.stacks_json) for message in sent]
    assert questions == ["q"]
    assert [(one.rank, one.has_answered, one.is_trainer) for one in (first, second)] == [
        (0, True, True),
        (1, False, True),
    ]
    assert first.state in ("R", "S")
    assert first.busy_permille is not None


def test_the_kernel_is_asked_without_privilege(tmp_path: Path) -> None:
    main = tmp_path / "17" / "task" / "17"
    main.mkdir(parents=True)
    (main / "stat").write_text("17 (a) b) T 1 " + " ".join(["0"] * 9) + " 150 50 0")
    assert look_at_main_thread(17, tmp_path).ran_ns == 200 * 10**9 // os.sysconf("SC_CLK_TCK")
    (main / "schedstat").write_text("1500 500 3\n")
    (main / "wchan").write_text("pipe_read")
    (main / "children").write_text("18 19 ")
    (tmp_path / "18").mkdir()
    (tmp_path / "18" / "stat").write_text("18 (pt_data_worker) Z 17 " + " ".join(["0"] * 12))
    (tmp_path / "18" / "comm").write_text("pt_data_\x1bworker\n")
    view = look_at_main_thread(17, tmp_path)
    assert (view.state, view.waits_in, view.ran_ns) == ("T", "pipe_read", 2000)
    assert [(child.pid, child.name, child.state) for child in find_children(17, tmp_path) or ()] == [
        (18, "pt_data_\ufffdworker", "Z")
    ]
    assert look_at_main_thread(99, tmp_path).state == ""
    (main / "children").write_text("")
    assert find_children(17, tmp_path) == []
    (main / "children").unlink()
    assert find_children(17, tmp_path) is None  # a kernel that does not tell
    assert find_children(0) is None
