"""The memory of the process before its recording: what counts, how often it is looked at, and how much is kept."""

import os
from pathlib import Path
from typing import Any

import pytest
from fleetprof_agent.samples.held_memory import LEAST_PAUSE_NS, MOST_KEPT, HeldMemory

PAGE = os.sysconf("SC_PAGE_SIZE")


class Looks:
    """A process whose statm is given, and a clock."""

    def __init__(self, folder: Path, statm: str | None = "5000 900 300 1 0 400 0\n") -> None:
        if statm is not None:
            (folder / "self").mkdir()
            (folder / "self/statm").write_text(statm)
        self.now = 1_000_000_000
        self.memory = HeldMemory(str(folder), lambda: self.now)

    def sent(self, *, reachable: bool = True) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []

        def send(kind: str, **fields: Any) -> bool:
            assert kind == "held"
            messages.append(fields)
            return reachable

        assert self.memory.flush(send) == (reachable or not messages)
        return messages


@pytest.mark.parametrize(("statm", "held"), [
    ("5000 900 300 1 0 400 0\n", [600 * PAGE]),
    ("5000 300 900\n", [0]),
    ("5000 900\n", []),
    ("nonsense", []),
    (None, []),
])  # fmt: skip
def test_its_own_memory_is_what_is_resident_without_what_it_shares(
    tmp_path: Path, statm: str | None, held: list[int]
) -> None:
    looks = Looks(tmp_path, statm)
    looks.memory.look()
    assert looks.sent() == [{"at_unix_ns": [looks.now], "own_bytes": held} for _ in held]


def test_looks_are_apart_and_sent_once(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    for _ in range(10):
        looks.memory.look()
        looks.now += LEAST_PAUSE_NS // 2
    assert len(looks.sent(reachable=False)[0]["at_unix_ns"]) == 5
    assert len(looks.sent()) == 1
    assert looks.sent() == []


def test_a_long_wait_is_looked_at_ever_more_rarely_and_to_its_end(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    first = looks.now
    for _ in range(20_000):
        looks.memory.look()
        looks.now += LEAST_PAUSE_NS
    times = looks.sent()[0]["at_unix_ns"]
    assert MOST_KEPT // 2 <= len(times) <= MOST_KEPT
    whole = looks.now - first
    assert times[0] - first < whole / 20
    assert looks.now - times[-1] < whole / 20
