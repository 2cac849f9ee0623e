"""The verdict on planted jobs that stand: cause and ranks are those that were planted."""

import re
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.stalls.causes import CAUSES
from fleetprof_analyzer.stalls.verdict import JobCause, judge_stall, read_ranges
from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ChildProcess, ProcessStacks, RecordedCollective, ThreadStack
from fleetprof_api.stalls import StallVerdict

PAGE = Path(__file__).parents[3] / "docs" / "hangs.md"
NOW = 1_790_000_000_000_000_000
SECOND = 10**9
TORCH = "/x/site-packages/torch"
REDUCE = (f"{TORCH}/distributed/distributed_c10d.py", "all_reduce", 4181)
TRAIN = ("/job/train.py", "main", 40)
LOADER = (f"{TORCH}/utils/data/dataloader.py", "_try_get_data", 1300)
PDB = ("/usr/lib/python3.11/pdb.py", "interaction", 300)
SAVE = (f"{TORCH}/serialization.py", "save", 900)
LOCK = ("/usr/lib/python3.11/threading.py", "wait", 327)
QUEUE = ("/usr/lib/python3.11/multiprocessing/queues.py", "get", 103)
SLEEP = ("/job/model.py", "forward", 12)
EVALUATE = ("/job/model.py", "Trainer.evaluate_epoch", 30)
MONITORED = (f"{TORCH}/distributed/distributed_c10d.py", "monitored_barrier", 5000)
RECEIVE = (f"{TORCH}/distributed/distributed_c10d.py", "recv", 2500)


def collective(sequence: int, *, group: str = "0 default_pg", ranks: str = "", **fields: Any) -> RecordedCollective:
    given: dict[str, Any] = {
        "name": "all_reduce",
        "is_p2p": False,
        "sizes": "[[4]]",
        "is_over": False,
        "created_unix_ns": NOW,
    } | fields
    return RecordedCollective(group=group, sequence=sequence, ranks=ranks, **given)


def rank(
    number: int, *frames: tuple[str, str, int], behind: int = 10, pending: Any = None, call: str = "", **fields: Any
) -> ProcessStacks:
    """A rank whose latest step is a minute old, in these frames, that has `behind` collectives behind it."""
    known = [collective(behind, is_over=True), *([pending] if pending else [])]
    given: dict[str, Any] = {
        "world_size": 4,
        "is_trainer": True,
        "has_agent": True,
        "has_answered": bool(frames),
        "state": "S",
        "busy_permille": 0,
        "at_unix_ns": NOW,
        "step": 100,
        "step_unix_ns": NOW - 60 * SECOND,
        "iteration_ns": SECOND // 2,
        "node": f"gpu-{number}",
        "places": [CodePlace(file=file, function=function, line=line) for file, function, line in frames],
        "threads": [ThreadStack(name="MainThread", task=1, is_main=True, stack=list(range(len(frames))), call=call)],
        "collectives": known if frames else [],
    }
    return ProcessStacks(process_id=f"p{number}", pid=number + 1, rank=number, **given | fields)


def others_wait(culprit: ProcessStacks) -> list[ProcessStacks]:
    """Ranks 0, 1 and 3 in all_reduce 11, beside this rank 2."""
    waiting = [rank(number, REDUCE, TRAIN, pending=collective(11)) for number in (0, 1, 3)]
    return [*waiting[:2], culprit, waiting[2]]


HELD: dict[str, tuple[ProcessStacks, str]] = {
    "blocked": (rank(2, SLEEP, TRAIN), "blocked_in_line"),
    "loops": (rank(2, SLEEP, TRAIN, state="R", busy_permille=990), "loop"),
    "loads": (rank(2, LOADER, TRAIN), "data_loading"),
    "loader's worker died": (
        rank(2, LOADER, TRAIN, children=[ChildProcess(pid=9, name="pt_data_worker", state="Z")]),
        "loader_worker_died",
    ),
    "loader's worker stopped": (
        rank(2, LOADER, TRAIN, children=[ChildProcess(pid=9, name="pt_data_worker", state="T")]),
        "loader_worker_stopped",
    ),
    "at a prompt": (rank(2, PDB, TRAIN), "debugger"),
    "saves": (rank(2, SAVE, TRAIN), "checkpoint"),
    "waits for a lock": (rank(2, LOCK, TRAIN), "lock"),
    "loader without a worker": (rank(2, LOADER, TRAIN, children=[]), "loader_worker_died"),
    "loads, and workers are not known": (rank(2, LOADER, TRAIN, children=None), "data_loading"),
    "asks a store": (rank(2, SLEEP, TRAIN, call="self.store.get", waits_in="wait_woken"), "rendezvous"),
    "waits for a message": (
        rank(2, MONITORED, TRAIN, pending=collective(3, name="recv 2<-0", is_p2p=True)),
        "message",
    ),
    "receives": (rank(2, RECEIVE, TRAIN), "message"),
    "in another call": (rank(2, MONITORED, TRAIN), "other_collective"),
    "in a child process": (rank(2, SLEEP, TRAIN, waits_in="do_wait"), "child_process"),
    "in subprocess": (rank(2, ("/usr/lib/python3.11/subprocess.py", "_wait", 2000), TRAIN), "child_process"),
    "in an event loop": (rank(2, ("/usr/lib/python3.11/asyncio/base_events.py", "_run", 1), TRAIN), "event_loop"),
    "for another thread": (rank(2, SLEEP, TRAIN, waits_in="futex_wait_queue_me"), "lock"),
    "for the lock of a file": (rank(2, SLEEP, TRAIN, waits_in="locks_lock_inode_wait"), "file_lock"),
    "for a pipe": (rank(2, SLEEP, TRAIN, waits_in="anon_pipe_read"), "pipe"),
    "for a queue of processes": (rank(2, QUEUE, TRAIN), "pipe"),
    "for a worker of its own that died": (
        rank(2, QUEUE, TRAIN, children=[ChildProcess(pid=9, name="python", state="Z")]),
        "loader_worker_died",
    ),
    "for a socket": (rank(2, SLEEP, TRAIN, waits_in="unix_stream_read_generic"), "network_read"),
    "for NFS": (rank(2, SLEEP, TRAIN, waits_in="rpc_wait_bit_killable", state="D"), "file_system"),
    "for a device": (rank(2, SLEEP, TRAIN, state="D"), "file_system"),
    "sleeps": (rank(2, SLEEP, TRAIN, waits_in="hrtimer_nanosleep", call="time.sleep"), "sleeps"),
    "sleeps, and the kernel is not seen": (rank(2, SLEEP, TRAIN, call="time.sleep"), "sleeps"),
    "sleeps in a library": (rank(2, (f"{TORCH}/x.py", "retry", 3), TRAIN, waits_in="hrtimer_nanosleep"), "sleeps"),
    "evaluates": (rank(2, SLEEP, EVALUATE, TRAIN, state="R", busy_permille=900), "evaluation"),
    "a model's eval() is none": (
        rank(2, (f"{TORCH}/nn/modules/module.py", "eval", 2), TRAIN, state="R", busy_permille=900),
        "loop",
    ),
    "stopped": (rank(2, state="T"), "stopped"),
    "sleeps with the interpreter": (rank(2, waits_in="hrtimer_nanosleep"), "interpreter_held"),
    "waits for the interpreter": (rank(2, waits_in="futex_do_wait"), "silent"),
    "keeps the interpreter": (rank(2, state="R", busy_permille=1000), "interpreter_held"),
    "silent": (rank(2, state=""), "silent"),
}


@pytest.mark.parametrize("case", HELD)
def test_the_rank_that_has_not_entered_is_named_with_what_it_is_at(case: str) -> None:
    process, cause = HELD[case]
    verdict = judge_stall(others_wait(process))
    assert (verdict.cause, verdict.ranks, verdict.stands_ns) == (cause, (2,), 60 * SECOND)
    assert verdict.sentence.startswith("Rank 2 has not entered all_reduce 11 of group 0 default_pg: it ")
    assert verdict.sentence.endswith("Ranks 0, 1 and 3 wait for it. Its node is gpu-2.")
    assert verdict.advice
    if process.places:
        own = next(place for place in process.places if place.file.startswith("/job/"))
        assert verdict.place == own
        call = process.threads[0].call
        shown = f"({own.file.rpartition('/')[2]}:{own.line} {own.function}{f': {call}' if call else ''})"
        assert shown in verdict.sentence


def test_how_long_the_others_have_waited_is_said() -> None:
    ranks = others_wait(rank(2, SLEEP, TRAIN))
    for process, since_s in zip((ranks[0], ranks[1], ranks[3]), (43, 50, 47), strict=True):
        process.collectives[-1].created_unix_ns = NOW - since_s * SECOND
    assert "Ranks 0, 1 and 3 have waited 43.0 s for it." in judge_stall(ranks).sentence


@pytest.mark.parametrize(("age_s", "moves"), [(3, True), (60, False)])
def test_a_job_without_steps_moves_by_its_collectives(age_s: int, moves: bool) -> None:
    ranks = others_wait(rank(2, SLEEP, TRAIN))
    for process in ranks:
        process.step, process.step_unix_ns, process.iteration_ns = None, None, 0
        for one in process.collectives:
            one.created_unix_ns = NOW - age_s * SECOND
    verdict = judge_stall(ranks)
    assert (verdict.cause == "moves", verdict.stands_ns) == (moves, age_s * SECOND)
    assert verdict.may_go_on, "it may be starting"


@pytest.mark.parametrize(("fields", "may_go_on"), [({}, True), ({"state": "T"}, False)])
def test_before_its_first_step_only_what_is_proven_is_a_hang(fields: Any, may_go_on: bool) -> None:
    ranks = others_wait(rank(2, SLEEP, TRAIN, **fields))
    for process in ranks:
        process.step, process.step_unix_ns = None, None
        process.collectives = []
    assert judge_stall(ranks).may_go_on is may_go_on


def test_ranks_that_wait_for_messages_of_each_other() -> None:
    ranks = [rank(n, RECEIVE, TRAIN, pending=collective(1, name="recv", is_p2p=True), world_size=2) for n in (0, 1)]
    verdict = judge_stall(ranks)
    assert (verdict.cause, verdict.ranks) == ("message", (0, 1))


def test_without_a_recorder_stacks_tell() -> None:
    ranks = others_wait(rank(2, SLEEP, TRAIN))
    for process in ranks:
        process.collectives = []
    verdict = judge_stall(ranks)
    assert (verdict.cause, verdict.ranks) == ("blocked_in_line", (2,))
    assert "has not entered a collective" in verdict.sentence


def test_a_rank_that_launched_less_ahead_is_not_late() -> None:
    """With devices, ranks are several collectives ahead of what they wait for."""
    ranks = [rank(n, REDUCE, TRAIN, pending=collective(11), behind=10 + n) for n in (0, 1, 3)]
    for process, ahead in zip(ranks, (15, 13, 12), strict=True):
        process.collectives.append(collective(ahead))
    verdict = judge_stall([*ranks, rank(2, SLEEP, TRAIN)])
    assert verdict.ranks == (2,)


MISMATCHES: dict[str, tuple[RecordedCollective, str]] = {
    "another collective": (collective(11, name="broadcast"), "mismatched_collectives"),
    "another size": (collective(11, sizes="[[5]]"), "mismatched_sizes"),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_ranks_in_different_collectives_at_one_number(case: str) -> None:
    pending, cause = MISMATCHES[case]
    verdict = judge_stall(others_wait(rank(2, REDUCE, TRAIN, pending=pending)))
    assert (verdict.cause, verdict.ranks) == (cause, (2,))
    assert "as number 11 of group 0 default_pg" in verdict.sentence


def test_gathered_sizes_may_differ() -> None:
    gather = {"name": "all_gather"}
    ranks = [rank(n, REDUCE, TRAIN, pending=collective(11, sizes=f"[[{n}]]", **gather)) for n in range(4)]
    assert judge_stall(ranks).cause == "collective"


def test_two_groups_that_wait_for_each_other() -> None:
    def member(number: int, group: str) -> ProcessStacks:
        return rank(number, REDUCE, TRAIN, pending=collective(1, group=group, ranks="0-1"), world_size=2)

    verdict = judge_stall([member(0, "1 a"), member(1, "2 b")])
    assert (verdict.cause, verdict.ranks) == ("deadlock", (0, 1))


def test_a_rank_that_is_not_there() -> None:
    verdict = judge_stall([one for one in others_wait(rank(2, SLEEP)) if one.rank != 2])
    assert (verdict.cause, verdict.ranks) == ("rank_missing", (2,))
    assert verdict.sentence == "Rank 2 of 4 is not seen. Ranks 0, 1 and 3 wait in all_reduce 11 of group 0 default_pg."


def test_all_have_entered() -> None:
    verdict = judge_stall([rank(n, REDUCE, TRAIN, pending=collective(11)) for n in range(4)])
    assert (verdict.cause, verdict.ranks) == ("collective", ())


def test_a_job_of_one() -> None:
    verdict = judge_stall([rank(0, SLEEP, TRAIN, world_size=1)])
    assert (verdict.cause, verdict.ranks) == ("blocked_in_line", (0,))
    assert verdict.sentence == "Rank 0 is blocked in a call (model.py:12 forward)."


@pytest.mark.parametrize(("age_s", "moves"), [(2.0, True), (9.0, True), (11.0, False)])
def test_a_job_that_moves(age_s: float, moves: bool) -> None:
    ranks = others_wait(rank(2, SLEEP, TRAIN))
    for process in ranks:
        process.step_unix_ns = NOW - int(age_s * SECOND)
    verdict = judge_stall(ranks)
    assert (verdict.cause == "moves") is moves
    assert not verdict.ranks if moves else verdict.ranks


@pytest.mark.parametrize(("iteration_s", "moves"), [(2.0, False), (11.0, False), (13.0, True)])
def test_a_job_of_long_iterations_moves_for_five_of_them(iteration_s: float, moves: bool) -> None:
    ranks = others_wait(rank(2, SLEEP, TRAIN))
    for process in ranks:
        process.iteration_ns = int(iteration_s * SECOND)
    assert (judge_stall(ranks).cause == "moves") is moves  # the latest step is a minute old


@pytest.mark.parametrize(("permille", "cause"), [(0, "blocked_in_line"), (499, "blocked_in_line"), (500, "loop")])
def test_a_thread_that_runs_half_of_the_time_computes(permille: int, cause: str) -> None:
    assert judge_stall(others_wait(rank(2, SLEEP, TRAIN, busy_permille=permille))).cause == cause


def test_several_that_have_not_entered_are_told_together() -> None:
    ranks = [rank(0, REDUCE, TRAIN, pending=collective(11)), *(rank(n, LOADER, TRAIN) for n in (1, 2, 3))]
    verdict = judge_stall(ranks)
    assert (verdict.cause, verdict.ranks) == ("data_loading", (1, 2, 3))
    assert ": each waits for its data loading (train.py:40 main). Rank 0 waits for them." in verdict.sentence


def test_each_cause_has_its_row_in_the_page_of_hangs() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE.read_text(), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == {cause.name for cause in CAUSES} | set(JobCause), PAGE


def test_what_nothing_proves_is_said_to_be_unknown() -> None:
    verdict = judge_stall([rank(0, SLEEP, TRAIN, world_size=2, behind=0), rank(1, SAVE, TRAIN, world_size=2, behind=0)])
    assert (verdict.cause, verdict.ranks) == ("unknown", ())


def test_groups_hold_each_rank_once_the_largest_first() -> None:
    verdict: StallVerdict = judge_stall(others_wait(rank(2, SLEEP, TRAIN)))
    assert [group.ranks for group in verdict.groups] == [(0, 1, 3), (2,)]


def test_nobody() -> None:
    assert judge_stall([]).cause == "no_rank"


@pytest.mark.parametrize(
    ("text", "ranges"),
    [("", []), ("0-3,8", [(0, 3), (8, 8)]), ("5", [(5, 5)]), ("a-b", []), ("0-99999999999", [])],
)
def test_ranges(text: str, ranges: list[tuple[int, int]]) -> None:
    assert read_ranges(text) == ranges
