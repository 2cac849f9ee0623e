"""Parts of the sentences about a job that stands: ranks, collectives, causes with their lines.

Guarantees: pure; a text names at most MOST_NAMED ranks.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.stacks import RecordedCollective

from fleetprof_analyzer.stalls.causes import StallCause
from fleetprof_analyzer.stalls.ranks import StalledRank, waits_in_collective

MOST_NAMED: Final = 4


def name_ranks(numbers: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 1 and 3`, or `63 ranks`."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    if len(numbers) > MOST_NAMED:
        return f"{len(numbers)} ranks"
    return f"ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def start(numbers: Sequence[int]) -> str:
    """The same at the start of a sentence."""
    return name_ranks(numbers).capitalize()


def name_collective(one: RecordedCollective | None) -> str:
    """`all_reduce 1,234 of group dp`; `a collective` where no recorder tells."""
    return "a collective" if one is None else f"{one.name} {one.sequence:,} of group {one.group}"


def say_cause(cause: StallCause, rank: StalledRank) -> str:
    """The words of a cause with the rank's own line, and what that calls."""
    place = rank.own_line
    if place is None:
        return cause.says
    call = f": {rank.call}" if rank.call else ""
    return f"{cause.says} ({place.file.rpartition('/')[2]}:{place.line} {place.function}{call})"


def say_waiting(ranks: Sequence[StalledRank]) -> str:
    """The ranks that wait in a collective, of those that are there."""
    waiting = [rank for rank in ranks if waits_in_collective(rank)]
    if not waiting:
        return ""
    one = next((collective for rank in waiting for collective in rank.pending.values()), None)
    verb = "waits" if len(waiting) == 1 else "wait"
    return f" {start([rank.number for rank in waiting])} {verb} in {name_collective(one)}."
