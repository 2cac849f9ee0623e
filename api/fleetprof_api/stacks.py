"""The stacks of a job's processes at one moment, their latest collectives, and the kernel's word on them.

Made by a sidecar of each process that it sees, passed on by the hub, judged by the analyzer. Times are Unix nanoseconds
of the process's own host. A value that could not be read is None, or "" for a text.
"""

from typing import Final

import msgspec

from fleetprof_api.errors import FleetprofError
from fleetprof_api.samples import CodePlace

MOST_BYTES: Final = 400_000  # of one process, as JSON: some 200 threads with deep stacks
MOST_ROWS: Final = 1024


class ThreadStack(msgspec.Struct, kw_only=True):
    """One thread. `stack` numbers `ProcessStacks.places`, the innermost frame first.

    `call`: what its innermost line calls, as in "time.sleep"; "" where that is not known.
    """

    name: str
    task: int  # its id at the kernel; 0: not known
    is_main: bool
    stack: list[int]
    call: str = ""


class RecordedCollective(msgspec.Struct, kw_only=True):
    """A collective as PyTorch's flight recorder has it. `sequence` is its number in the group.

    `ranks` are the group's, as in "0-3,8"; "" where they are not known.
    """

    group: str
    sequence: int
    name: str
    is_p2p: bool
    sizes: str  # of its inputs, as PyTorch prints them
    is_over: bool
    created_unix_ns: int
    ranks: str = ""


class ChildProcess(msgspec.Struct, kw_only=True):
    """A process that this one began: workers of a DataLoader, mostly. `state` and `waits_in` as in ProcessStacks."""

    pid: int
    name: str
    state: str
    waits_in: str = ""


class ProcessStacks(msgspec.Struct, kw_only=True):
    """One process. Of who did not answer there is only what the kernel tells.

    `state`: the main thread's, a letter of proc(5) (R runs, S sleeps, D waits for a device, T is stopped, Z has ended);
    `waits_in`: the kernel's function that it waits in (wchan); `children`: None: not known;
    `busy_permille`: the share of the time between question and answer in which its main thread ran, or
    was ready to run.
    """

    process_id: str
    pid: int
    rank: int | None = None
    world_size: int | None = None
    node: str = ""
    pod: str = ""
    is_trainer: bool = False
    has_agent: bool = False
    has_answered: bool = False
    state: str = ""
    waits_in: str = ""
    busy_permille: int | None = None
    at_unix_ns: int = 0
    step: int | None = None
    step_unix_ns: int | None = None
    iteration_ns: int = 0  # the median of the latest before
    places: list[CodePlace] = []
    threads: list[ThreadStack] = []
    collectives: list[RecordedCollective] = []
    children: list[ChildProcess] | None = None


class UnreadableStacks(FleetprofError, ValueError):
    """Bytes that are no ProcessStacks; the message says why."""


def read_stacks(data: bytes | str) -> ProcessStacks:
    """Checks one process's stacks where they come from elsewhere. Raises UnreadableStacks."""
    if len(data) > MOST_BYTES:
        raise UnreadableStacks(f"{len(data)} bytes, at most {MOST_BYTES}")
    try:
        stacks = msgspec.json.decode(data, type=ProcessStacks)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableStacks(str(error)) from None
    check_stacks(stacks)
    return stacks


def check_stacks(stacks: ProcessStacks) -> None:
    """Raises UnreadableStacks for one that names what is not there, or would not print."""
    counts = len(stacks.places), len(stacks.threads), len(stacks.collectives), len(stacks.children or ())
    if max(counts) > MOST_ROWS:
        raise UnreadableStacks(f"more than {MOST_ROWS} rows")
    if any(not 0 <= place < len(stacks.places) for thread in stacks.threads for place in thread.stack):
        raise UnreadableStacks("threads.stack: names a place that is not there")
    texts = [stacks.process_id, stacks.node, stacks.pod, stacks.state, stacks.waits_in]
    texts += [text for place in stacks.places for text in (place.file, place.function)]
    texts += [f"{thread.name}{thread.call}" for thread in stacks.threads]
    texts += [f"{child.name}{child.state}{child.waits_in}" for child in stacks.children or ()]
    texts += [text for one in stacks.collectives for text in (one.group, one.name, one.sizes, one.ranks)]
    if not all(text.isprintable() for text in texts):
        raise UnreadableStacks("a text has characters that cannot be printed")
