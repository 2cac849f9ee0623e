"""The verdict on a job that stands: the rank that the others wait for, and why.

Numbers of collectives are judged first, then stacks.

The rules, the first that fits counts: a rank is missing; ranks are in different collectives at the same number (a
mismatch), or in the same with other sizes; ranks have not entered a collective that others wait in; all wait in
collectives, each for another group (a deadlock); one cause holds the only rank, or all.

Guarantees: pure. A job whose latest step is younger than its own pace allows is said to move. What is not proven by a
number, a stack or the kernel is said to be unknown, with what would tell.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from fleetprof_api.limits import SECOND_NS
from fleetprof_api.quantities import duration
from fleetprof_api.stacks import ProcessStacks, RecordedCollective
from fleetprof_api.stalls import StallVerdict

from fleetprof_analyzer.stalls.causes import CAUSES, find_cause
from fleetprof_analyzer.stalls.groups import group_ranks
from fleetprof_analyzer.stalls.ranks import StalledRank, choose_ranks, waits_in_collective
from fleetprof_analyzer.stalls.sentences import (
    MOST_NAMED,
    name_collective,
    name_ranks,
    say_cause,
    say_waiting,
    start,
)

MOVES_ITERATIONS: Final = 5
LEAST_STALL_NS: Final = 10 * 10**9
_MOST_GROUPS: Final = 10_000
_MOST_MEMBERS: Final = 400_000  # of all groups, by their lists: a job may say anything of itself


class JobCause(StrEnum):
    """Causes that are not one rank's own; each has its row in docs/hangs.md."""

    MOVES = "moves"
    NO_RANK = "no_rank"
    RANK_MISSING = "rank_missing"
    MISMATCHED_COLLECTIVES = "mismatched_collectives"
    MISMATCHED_SIZES = "mismatched_sizes"
    DEADLOCK = "deadlock"
    COLLECTIVE = "collective"
    UNKNOWN = "unknown"


_PROVEN: Final = frozenset(
    {JobCause.MISMATCHED_COLLECTIVES, JobCause.MISMATCHED_SIZES, JobCause.DEADLOCK}
    | {cause.name for cause in CAUSES if cause.is_proven}
)


def judge_stall(processes: Sequence[ProcessStacks]) -> StallVerdict:
    """The verdict on one job's processes."""
    ranks = choose_ranks(processes)
    if not ranks:
        text = "No rank of the job was seen."
        return StallVerdict(
            cause=JobCause.NO_RANK, sentence=text, advice="check with `fleetprof list` that the job runs"
        )
    stands_ns = _find_stand_ns(ranks)
    found = _find_moving(ranks, stands_ns) or _find_missing(ranks) or _find_held(ranks) or _find_alone(ranks)
    # A start may take any time.
    may_go_on = found.may_go_on or not (_has_stepped(ranks) or found.cause in _PROVEN)
    return msgspec.structs.replace(found, may_go_on=may_go_on, stands_ns=stands_ns, groups=group_ranks(ranks))


def _has_stepped(ranks: Sequence[StalledRank]) -> bool:
    return any(rank.process.step_unix_ns for rank in ranks)


def _find_stand_ns(ranks: Sequence[StalledRank]) -> int:
    """Since when no rank made a step, by each one's own clock; of a job that makes none, began a collective."""
    since = [r.process.at_unix_ns - r.process.step_unix_ns for r in ranks if r.process.step_unix_ns]
    if not since:
        since = [r.process.at_unix_ns - one.created_unix_ns for r in ranks for one in r.process.collectives]
    return max(0, min(since, default=0))


def _find_moving(ranks: Sequence[StalledRank], stands_ns: int) -> StallVerdict | None:
    pace = max((r.process.iteration_ns for r in ranks), default=0)
    if not stands_ns or stands_ns > max(MOVES_ITERATIONS * pace, LEAST_STALL_NS):
        return None
    if any(rank.is_stopped for rank in ranks):
        return None
    usual = f"; an iteration takes {duration(pace)}" if pace else ""
    latest = "step ended" if _has_stepped(ranks) else "collective began"
    text = f"The job moves: its latest {latest} {duration(stands_ns)} ago{usual}."
    return StallVerdict(
        cause=JobCause.MOVES, may_go_on=True, sentence=text, advice="to see where its time goes: fleetprof capture"
    )


def _find_missing(ranks: Sequence[StalledRank]) -> StallVerdict | None:
    size = max((r.process.world_size or 0 for r in ranks), default=0)
    missing = tuple(sorted(set(range(size)) - {r.number for r in ranks}))
    if not missing or len(missing) == size:
        return None
    return StallVerdict(
        cause=JobCause.RANK_MISSING,
        sentence=f"{start(missing)} of {size} {'is' if len(missing) == 1 else 'are'} not seen.{say_waiting(ranks)}",
        advice="see whether the process has ended (its log, the kernel's for memory), or its sidecar is away",
        ranks=missing,
    )


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A collective, the ranks that wait in it, and those that have not entered it."""

    collective: RecordedCollective
    waiting: tuple[int, ...]
    behind: tuple[int, ...]


def _find_held(ranks: Sequence[StalledRank]) -> StallVerdict | None:
    """Compares the ranks of each group by their collectives."""
    awaited: list[_Awaited] = []
    for group, members in _find_groups(ranks).items():
        if mismatch := _find_mismatch(group, members):
            return mismatch
        if one := _find_awaited(group, members, ranks):
            awaited.append(one)
    if not awaited:
        return _find_unheard(ranks)
    waiting = {number for one in awaited for number in one.waiting}
    free = {number for one in awaited for number in one.behind} - waiting
    if not free:
        return _say_deadlock(awaited)
    first = next(one for one in awaited if free.intersection(one.behind))
    held, waiting_ranks = ([r for r in ranks if r.number in chosen] for chosen in (free, set(first.waiting)))
    return _say_late(held, first.collective, waiting_ranks)


def _find_awaited(group: str, members: Sequence[StalledRank], ranks: Sequence[StalledRank]) -> _Awaited | None:
    """The oldest collective of a group that somebody waits in, None where all have entered it."""
    waiting = [rank for rank in members if group in rank.pending]
    if not waiting:
        return None
    oldest = min((rank.pending[group] for rank in waiting), key=lambda one: one.sequence)
    behind = [rank for rank in members if _count_entered(rank, group) < oldest.sequence]
    behind = behind or [rank for rank in ranks if not rank.process.has_answered]
    if not behind:
        return None
    return _Awaited(oldest, tuple(rank.number for rank in waiting), tuple(rank.number for rank in behind))


def _find_groups(ranks: Sequence[StalledRank]) -> dict[str, list[StalledRank]]:
    """The ranks of each group that answered, by its list or as they were in it; the largest group first."""
    heard = {rank.number: rank for rank in ranks if rank.process.has_answered}
    members: dict[str, set[int]] = {}
    lists: dict[str, str] = {}
    for number, rank in heard.items():
        for group, one in rank.reached.items():
            if group in members or len(members) < _MOST_GROUPS:
                members.setdefault(group, set()).add(number)
                lists.setdefault(group, one.ranks)
    numbers, room = sorted(heard), _MOST_MEMBERS
    for group, text in lists.items():
        listed = [number for first, last in read_ranges(text) for number in _between(numbers, first, last)]
        if len(listed) <= room:
            room -= len(listed)
            members[group].update(listed)
    found = {group: [heard[number] for number in sorted(all_of_it)] for group, all_of_it in members.items()}
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _between(numbers: Sequence[int], first: int, last: int) -> Sequence[int]:
    return numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]


def read_ranges(text: str) -> list[tuple[int, int]]:
    """The first and last numbers of "0-3,8"; none of a text that is something else."""
    ranges: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit() and len(first) < 8 and len(last) < 8):
            return []
        ranges.append((int(first), int(last or first)))
    return ranges


def _count_entered(rank: StalledRank, group: str) -> int:
    """The number of the latest collective of the group that it has entered; 0: none."""
    return rank.reached[group].sequence if group in rank.reached else 0


_SAME_SIZES: Final = frozenset({"all_reduce", "reduce", "broadcast", "allreduce", "allreduce_coalesced"})


def _find_mismatch(group: str, members: Sequence[StalledRank]) -> StallVerdict | None:
    """The ranks that are in another collective than most at the same number, or in the same with other sizes."""
    by_sequence: dict[int, list[StalledRank]] = {}
    for rank in members:
        if group in rank.pending:
            by_sequence.setdefault(rank.pending[group].sequence, []).append(rank)
    for _, entered in sorted(by_sequence.items()):
        names = {rank.number: rank.pending[group].name for rank in entered}
        if len(set(names.values())) > 1:
            return _say_mismatch(JobCause.MISMATCHED_COLLECTIVES, group, entered, names)
        sizes = {rank.number: f"{names[rank.number]} of {rank.pending[group].sizes}" for rank in entered}
        if len(set(sizes.values())) > 1 and _SAME_SIZES.issuperset(names.values()):
            return _say_mismatch(JobCause.MISMATCHED_SIZES, group, entered, sizes)
    return None


def _say_mismatch(cause: JobCause, group: str, entered: Sequence[StalledRank], what: dict[int, str]) -> StallVerdict:
    usual = Counter(what.values()).most_common(1)[0][0]
    odd = [rank for rank in entered if what[rank.number] != usual]
    numbers = tuple(rank.number for rank in odd)
    others = name_ranks([number for number in what if what[number] == usual])
    late = f"{start(numbers)} {'has' if len(odd) == 1 else 'have'} entered {what[numbers[0]]}"
    place = f"number {odd[0].pending[group].sequence} of group {group}"
    return StallVerdict(
        cause=cause,
        sentence=f"{late} as {place}, {others} {usual}.",
        advice="let all ranks call the same collectives in the same order with the same sizes",
        ranks=numbers,
        place=odd[0].own_line,
    )


def _find_unheard(ranks: Sequence[StalledRank]) -> StallVerdict | None:
    """Ranks that are not in a collective, or do not answer, while others wait in one by their stacks."""
    waiting = [rank for rank in ranks if waits_in_collective(rank)]
    numbers = {rank.number for rank in waiting}
    held = [rank for rank in ranks if rank.number not in numbers]
    if not waiting or not held:
        return None
    return _say_late(held, None, waiting)


def _say_late(
    held: Sequence[StalledRank], collective: RecordedCollective | None, waiting: Sequence[StalledRank]
) -> StallVerdict:
    cause = find_cause(held[0])
    alike = [rank for rank in held if find_cause(rank) is cause]
    numbers = tuple(rank.number for rank in alike)
    alone = len(alike) == 1
    late = f"{start(numbers)} {'has' if alone else 'have'} not entered {name_collective(collective)}"
    others = f"{_say_wait(waiting, collective)} for {'it' if alone else 'them'}."
    node = f" Its node is {alike[0].process.node}." if alone and alike[0].process.node else ""
    return StallVerdict(
        cause=cause.name,
        may_go_on=cause.may_go_on,
        sentence=f"{late}: {'it' if alone else 'each'} {say_cause(cause, alike[0])}. {others}{node}",
        advice=cause.advice,
        ranks=numbers,
        place=alike[0].own_line,
    )


def _say_wait(waiting: Sequence[StalledRank], collective: RecordedCollective | None) -> str:
    """The ranks that wait, and for how long at the least."""
    numbers, alone = [rank.number for rank in waiting], len(waiting) == 1
    entered = [
        rank.process.at_unix_ns - rank.pending[collective.group].created_unix_ns
        for rank in waiting
        if collective is not None and collective.group in rank.pending
    ]
    if (least_ns := min(entered, default=0)) < SECOND_NS:
        return f"{start(numbers)} {'waits' if alone else 'wait'}"
    return f"{start(numbers)} {'has' if alone else 'have'} waited {duration(least_ns)}"


def _say_deadlock(awaited: Sequence[_Awaited]) -> StallVerdict:
    parts = [
        f"{name_ranks(one.waiting)} in {one.collective.name} of group {one.collective.group}"
        for one in awaited[:MOST_NAMED]
    ]
    return StallVerdict(
        cause=JobCause.DEADLOCK,
        sentence=f"Ranks wait for each other in different groups: {'; '.join(parts)}.",
        advice="let all ranks enter the collectives of different groups in the same order",
        ranks=tuple(sorted({number for one in awaited for number in one.waiting})),
    )


def _find_alone(ranks: Sequence[StalledRank]) -> StallVerdict:
    """The cause that all ranks have, where no rank waits for another one by what is known."""
    cause = find_cause(ranks[0])
    if any(find_cause(rank) is not cause for rank in ranks):
        return StallVerdict(
            cause=JobCause.UNKNOWN,
            may_go_on=True,
            sentence="The rank that the others wait for is not known: stacks differ, and no collective says more.",
            advice="look at the groups of stacks below, the smallest first",
        )
    if all(waits_in_collective(rank) for rank in ranks) and not all(rank.messages for rank in ranks):
        return StallVerdict(
            cause=JobCause.COLLECTIVE,
            sentence="All ranks are in a collective, and all have entered it: the network or a device holds it up.",
            advice="look at the network between the nodes and at the devices (NCCL_DEBUG=INFO, dmesg)",
            place=ranks[0].own_line,
        )
    numbers = tuple(rank.number for rank in ranks)
    each = "" if len(ranks) == 1 else ": each"
    return StallVerdict(
        cause=cause.name,
        may_go_on=cause.may_go_on,
        sentence=f"{start(numbers)}{each} {say_cause(cause, ranks[0])}.",
        advice=cause.advice,
        ranks=numbers,
        place=ranks[0].own_line,
    )
