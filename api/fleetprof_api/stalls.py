"""The stacks of a job: the verdict, the groups of equal stacks, and both as a request stores them.

Judged by the analyzer (`fleetprof_analyzer.stalls`), stored by the hub, shown by commands and pages.
"""

import gzip
import io
from typing import Final

import msgspec

from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks, UnreadableStacks, check_stacks

MOST_STORED_BYTES: Final = 256 << 20
"""The bound of all samples of a request, as JSON; the store has them compressed."""


class StackGroup(msgspec.Struct, frozen=True):
    """`frames` are the innermost first; empty for ranks whose stack is not known."""

    ranks: tuple[int, ...]
    frames: tuple[CodePlace, ...]
    own_line: CodePlace | None


class StallVerdict(msgspec.Struct, kw_only=True, frozen=True):
    """`cause` is a word of docs/hangs.md; `ranks` hold the others up; `stands_ns`: 0 where not known.

    `may_go_on`: what is seen may be work that takes long, or nothing proves that the job hangs.
    """

    cause: str
    sentence: str
    advice: str
    may_go_on: bool = False
    ranks: tuple[int, ...] = ()
    place: CodePlace | None = None
    stands_ns: int = 0
    groups: list[StackGroup] = []


class StacksSample(msgspec.Struct, kw_only=True):
    """One look at a job."""

    at_unix_ns: int
    verdict: StallVerdict
    processes: list[ProcessStacks]


class JobStacks(msgspec.Struct, kw_only=True):
    """The document of a request for stacks; the latest sample last."""

    samples: list[StacksSample]


def write_job_stacks(stacks: JobStacks) -> bytes:
    """As they are stored."""
    return gzip.compress(msgspec.json.encode(stacks), 5)


def read_job_stacks(data: bytes) -> JobStacks:
    """Checks what a store holds. Raises UnreadableStacks."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MOST_STORED_BYTES + 1)
        if len(text) > MOST_STORED_BYTES:
            raise UnreadableStacks(f"more than {MOST_STORED_BYTES} bytes")
        stacks = msgspec.json.decode(text, type=JobStacks)
    except (OSError, EOFError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableStacks(f"{error}") from None
    for sample in stacks.samples:
        for process in sample.processes:
            check_stacks(process)
    return stacks
