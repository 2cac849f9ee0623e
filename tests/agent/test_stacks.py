"""The listener in a real job: it answers while the training hangs, and leaves nothing."""

import pickle
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_agent import wire
from fleetprof_agent.stacks.flight_recorder import COLUMNS, read_collectives, say_ranges
from fleetprof_api.stacks import RecordedCollective
from harness.training.agent_ground import AgentGround

HANG = """
import threading
model, optimizer = make()
iterate(model, optimizer)
iterate(model, optimizer)
child = os.fork()
if not child:
    while not is_stopped():
        time.sleep(0.05)
    os._exit(0)

def hang():
    print("hangs", [thread.name for thread in threading.enumerate()], flush=True)
    while not is_stopped():
        time.sleep(0.05)  # here

hang()
os.waitpid(child, 0)
"""


def find_listeners(ground: AgentGround) -> list[Path]:
    return list(Path(ground.directory).glob(f"{wire.LISTENER_SOCKET_PREFIX}*"))


def test_a_job_that_hangs_says_where(ground: AgentGround, python: str, prelude: str) -> None:
    job = ground.start(python, prelude + HANG)
    job.await_output("hangs ['MainThread']")
    (listener,) = find_listeners(ground)
    ground.side.send_to(str(listener), "look", query="q-1")
    threads = ground.side.await_message("threads", lambda message: message["query"] == "q-1")
    main = threads["is_main"].index(True)
    places = ground.side.of("places")[-1]
    stack = ground.side.of("stacks")[-1]["stacks"][threads["stack"][main]]
    assert [places["function"][place] for place in stack] == ["hang", "<module>"]
    assert threads["pid"] == job.process.pid
    assert threads["step"] >= 2
    assert len([m for m in ground.side.of("threads") if m["query"] == "q-1"]) == 1  # the child is silent
    assert job.stop() == 0
    assert find_listeners(ground) == []


def test_it_can_be_switched_off_and_hears_only_the_sidecar(
    ground: AgentGround, newest: str, prelude: str, tmp_path: Path
) -> None:
    job = ground.start(newest, prelude + HANG)
    job.await_output("hangs")
    (listener,) = find_listeners(ground)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.bind(str(tmp_path / "s"))
        stranger.sendto(wire.encode("look", query="q-2"), str(listener))
        stranger.sendto(b"\xff{", str(listener))
    ground.side.send_to(str(listener), "look", query="q-3")
    ground.side.await_message("threads", lambda message: message["query"] == "q-3")
    assert [m["query"] for m in ground.side.of("threads")] == ["q-3"]
    assert job.stop() == 0
    other = ground.start(newest, prelude + HANG, FLEETPROF_STACKS="0")
    other.await_output("hangs")
    assert find_listeners(ground) == []
    assert other.stop() == 0


def entry(group: str, number: int, **fields: Any) -> dict[str, Any]:
    usual = {"profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "state": "scheduled", "time_created_ns": number}
    known = {"process_group": (group, "dp"), "collective_seq_id": number, "p2p_seq_id": 0, "is_p2p": False}
    return usual | known | fields


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([entry("0", n) for n in range(9)], [("0 dp", n, "all_reduce", False) for n in range(3, 9)]),
        ([entry("0", 1, retired=True)], [("0 dp", 1, "all_reduce", True)]),
        ([entry("0", 1, state="completed")], [("0 dp", 1, "all_reduce", True)]),
        ([{"process_group": ("0", "")}, entry("1", 2)], [("1 dp", 2, "all_reduce", False)]),
        ([entry("0", -1), entry("0", 2**63)], []),
        ([entry("a\x1b", 3)], [("a? dp", 3, "all_reduce", False)]),
    ],
)
def test_the_latest_collectives_of_each_group(entries: list[dict[str, Any]], expected: list[Any]) -> None:
    def dump(**_: bool) -> bytes:
        return pickle.dumps({"entries": entries})

    torch = SimpleNamespace(_C=SimpleNamespace(_distributed_c10d=SimpleNamespace(_dump_fr_trace=dump)))
    columns = read_collectives(torch)
    names = ("group", "sequence", "name", "is_over")
    assert list(zip(*(columns[name] for name in names), strict=True)) == expected


def test_the_columns_are_those_that_the_sidecar_reads() -> None:
    assert set(COLUMNS) == set(RecordedCollective.__struct_fields__)


def test_without_a_recorder_there_are_none() -> None:
    assert read_collectives(SimpleNamespace())["group"] == []


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 2, 3, 9], "0,2-3,9")])
def test_ranges(numbers: list[int], text: str) -> None:
    assert say_ranges(numbers) == text
