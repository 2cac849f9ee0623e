"""The stack of another thread is read at one instant, whatever the garbage collector calls."""

import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_agent.samples.frames import LONGEST_WALK, find_line, read_stack

# Whenever a collection begins in the thread that looks, the other one returns from all its frames and calls others.
RACE = """
import gc, sys, threading
from fleetprof_agent.samples.frames import read_stack

SECONDS = 30
looker = threading.get_ident()
turn, unwound, rounds = threading.Event(), threading.Event(), 0

def wind(depth):
    if depth:
        return wind(depth - 1)
    wait()

def wind_wider(depth):
    a = b = c = d = e = f = g = h = i = j = k = m = n = o = p = 10**9 + depth
    if depth:
        return wind_wider(depth - 1)
    wait()

def wait():
    parked.set()
    unwound.set()
    turn.wait(SECONDS)
    turn.clear()

def live():
    while not over:
        wind(20)
        wind_wider(20)

def yield_to_the_other(phase, info):
    global rounds
    if phase == "start" and threading.get_ident() == looker and parked.is_set():
        parked.clear()
        unwound.clear()
        rounds += 1
        turn.set()
        assert unwound.wait(SECONDS)

over, parked = False, threading.Event()
thread = threading.Thread(target=live, daemon=True)
thread.start()
assert parked.wait(SECONDS)
gc.callbacks.append(yield_to_the_other)
gc.set_threshold(1)
for _ in range(300):
    functions = [code.co_name for code, _ in LOOK(thread.ident)]
    assert functions[-1] == "_bootstrap" and "live" in functions, functions
gc.callbacks.clear()
print("looked", rounds > 0)
over = True
turn.set()
"""
WALK = """
def walk(thread):
    frame, found = sys._current_frames().get(thread), []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found
"""


def race(look: str) -> "subprocess.CompletedProcess[str]":
    program = RACE.replace("LOOK", look).replace("\n\nSECONDS", f"\n{WALK}\nSECONDS", 1)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)


def test_a_thread_that_returns_while_the_collector_runs_harms_no_look() -> None:
    result = race("read_stack")
    assert (result.returncode, result.stdout) == (0, "looked True\n"), result.stderr[-2000:]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="only CPython 3.11 collects while it makes a frame object")
def test_without_that_the_race_is_lost() -> None:
    result = race("walk")
    assert result.returncode == -signal.SIGSEGV, "the test above shows nothing any more"


def park(depth: int) -> tuple[threading.Thread, Callable[[], None]]:
    """A thread that waits at this depth, and what lets it end."""
    there, leave = threading.Event(), threading.Event()

    def wind(depth: int) -> None:
        if depth:
            return wind(depth - 1)
        there.set()
        leave.wait()
        return None

    thread = threading.Thread(target=wind, args=(depth,))
    thread.start()
    there.wait()

    def end() -> None:
        leave.set()
        thread.join()

    return thread, end


@pytest.mark.parametrize(("depth", "winding"), [(0, 1), (3, 4), (LONGEST_WALK + 50, None)])
def test_all_frames_the_innermost_first_up_to_a_bound(depth: int, winding: int | None) -> None:
    thread, end = park(depth)
    try:
        assert thread.ident is not None
        stack = read_stack(thread.ident)
    finally:
        end()
    names = [code.co_name for code, _ in stack]
    assert names[:2] == ["wait", "wait"]  # of the condition, of the event
    if winding is None:
        assert len(stack) == LONGEST_WALK + 1
    else:
        assert names.count("wind") == winding
        assert names[-1] == "_bootstrap"


def test_the_line_is_the_frames() -> None:
    frame = sys._getframe()
    (code, instruction), line = read_stack(threading.get_ident())[1], frame.f_lineno
    assert code is frame.f_code
    assert find_line(code, instruction) == line


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    def fail() -> dict[int, Any]:
        raise RuntimeError

    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert read_stack(threading.get_ident())
        assert read_stack(0) == []
        with pytest.raises(RuntimeError):
            read_stack(0, fail)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()
