"""The call in the line of a thread that waits, by its instructions alone."""

import sys
import threading
import time
from collections.abc import Callable

import pytest
from fleetprof_agent.samples.frames import read_stack
from fleetprof_agent.stacks.calls import find_call
from harness.waiting import wait_until


class Holder:
    """Something whose methods wait."""

    def __init__(self) -> None:
        self.store = self

    get = staticmethod(time.sleep)


def calls_a_function() -> None:
    time.sleep(0.3)


def calls_a_method() -> None:
    holder = Holder()
    len("a"), holder.store.get(0.3)


def calls_what_a_call_gives() -> None:
    (lambda: time.sleep)()(0.3)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns before")
@pytest.mark.parametrize(
    ("function", "call"),
    [(calls_a_function, "time.sleep"), (calls_a_method, "holder.store.get"), (calls_what_a_call_gives, "")],
)
def test_the_call_of_a_line(function: Callable[[], None], call: str) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    found: list[str] = []

    def looks() -> bool:
        frames = read_stack(thread.ident or 0)
        if frames and frames[0][0] is function.__code__ and thread.is_alive():
            found.append(find_call(*frames[0]))
        return not thread.is_alive()

    wait_until(looks, "the thread's end")
    assert call in found


def test_what_is_no_call_has_no_name() -> None:
    assert find_call(calls_a_function.__code__, 0) == ""
    assert find_call(None, 0) == ""
