"""The order of requests: by the time that a request was made, then by its name, in each namespace alone."""

import asyncio
from itertools import permutations

from fleetprof_operator.hub.waiting_line import WaitingLine

_EARLY, _LATE = "2026-11-25T09:00:00Z", "2026-11-25T09:00:01Z"
_TURNS = {"uid-3": (_EARLY, "alpha"), "uid-1": (_EARLY, "beta"), "uid-2": (_LATE, "aleph")}


def test_the_places_do_not_depend_on_who_came_first() -> None:
    for order in permutations(_TURNS):
        line = WaitingLine()
        line.join("other", "uid-0", (_EARLY, "aaa"))
        for uid in order:
            line.join("team", uid, _TURNS[uid])
        assert [line.find_place("team", turn) for turn in _TURNS.values()] == [1, 2, 3]


def test_only_who_comes_before_holds_a_request_up() -> None:
    line = WaitingLine()
    for uid, turn in _TURNS.items():
        line.join("team", uid, turn)
    line.hold("team", "uid-1", _TURNS["uid-1"])
    line.join("team", "uid-1", _TURNS["uid-1"])  # seen once more
    assert [line.is_held("team", turn) for turn in _TURNS.values()] == [False, False, True]
    line.leave("team", "uid-1")
    assert [line.is_held("team", turn) for turn in _TURNS.values()] == [False, False, False]
    assert [line.find_place("team", turn) for turn in _TURNS.values()] == [1, 2, 2]


async def test_who_is_first_learns_of_it_when_the_others_leave() -> None:
    line = WaitingLine()
    for uid, turn in _TURNS.items():
        line.join("team", uid, turn)
    waiting = {uid: asyncio.create_task(line.wait_to_be_first("team", turn, 3600)) for uid, turn in _TURNS.items()}
    order = []
    for uid in ("uid-3", "uid-1", "uid-2"):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        order.append([uid for uid, task in waiting.items() if task.done()])
        line.leave("team", uid)
    assert order == [["uid-3"], ["uid-3", "uid-1"], ["uid-3", "uid-1", "uid-2"]]
