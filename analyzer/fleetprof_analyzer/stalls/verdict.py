"""Which rank the others wait for, and why: judged by numbers of collectives first, then by stacks.

The rules, the first that fits counts: a rank is missing; ranks are in different collectives at the same number (a
mismatch), or in the same with other sizes; ranks have not entered a collective that others wait in; all wait in
collectives, each for another group (a deadlock); one cause holds the only rank, or all.

Guarantees: pure. A job whose latest step is younger than its own pace allows is said to move. What is not proven by a
number, a stack or the kernel is said to be unknown, with what would tell.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks, RecordedCollective

from fleetprof_analyzer.stalls.causes import StallCause, find_cause
from fleetprof_analyzer.stalls.groups import StackGroup, group_ranks
from fleetprof_analyzer.stalls.ranks import StalledRank, choose_ranks

MOVES_ITERATIONS: Final = 5
LEAST_STALL_NS: Final = 10 * 10**9
_SHOWN: Final = 4
_MOST_RANKS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StallVerdict:
    """`cause` is one of `causes`, or of this module's; `ranks` hold the others up; `stands_ns`: 0 where not known."""

    cause: str
    sentence: str
    advice: str
    ranks: tuple[int, ...] = ()
    place: CodePlace | None = None
    stands_ns: int = 0
    groups: Sequence[StackGroup] = field(default_factory=list)


def judge_stall(processes: Sequence[ProcessStacks]) -> StallVerdict:
    """The verdict on one job's processes."""
    ranks = choose_ranks(processes)
    groups = group_ranks(ranks)
    if not ranks:
        text = "No rank of the job was seen."
        return StallVerdict(cause="no_rank", sentence=text, advice="check with `fleetprof list` that the job runs")
    stands_ns = _find_stand_ns(ranks)
    found = _find_moving(ranks, stands_ns) or _find_missing(ranks) or _find_held(ranks) or _find_alone(ranks)
    return StallVerdict(
        cause=found.cause,
        sentence=found.sentence,
        advice=found.advice,
        ranks=found.ranks,
        place=found.place,
        stands_ns=stands_ns,
        groups=groups,
    )


def _find_stand_ns(ranks: Sequence[StalledRank]) -> int:
    """Since when no rank made a step, by each one's own clock."""
    since = [r.process.at_unix_ns - r.process.step_unix_ns for r in ranks if r.process.step_unix_ns]
    return max(0, min(since, default=0))


def _find_moving(ranks: Sequence[StalledRank], stands_ns: int) -> StallVerdict | None:
    pace = max((r.process.iteration_ns for r in ranks), default=0)
    if not stands_ns or stands_ns > max(MOVES_ITERATIONS * pace, LEAST_STALL_NS):
        return None
    if any(rank.is_stopped for rank in ranks):
        return None
    usual = f"; an iteration takes {_say_s(pace)}" if pace else ""
    text = f"The job moves: its latest step ended {_say_s(stands_ns)} ago{usual}."
    return StallVerdict(cause="moves", sentence=text, advice="to see where its time goes: fleetprof capture")


def _find_missing(ranks: Sequence[StalledRank]) -> StallVerdict | None:
    size = max((r.process.world_size or 0 for r in ranks), default=0)
    missing = tuple(sorted(set(range(size)) - {r.number for r in ranks}))
    if not missing or len(missing) == size:
        return None
    return StallVerdict(
        cause="rank_missing",
        sentence=f"{_start(missing)} of {size} {'is' if len(missing) == 1 else 'are'} not seen. {_say_waiting(ranks)}.",
        advice="see whether the process has ended (its log, the kernel's for memory), or its sidecar is away",
        ranks=missing,
    )


def _find_held(ranks: Sequence[StalledRank]) -> StallVerdict | None:
    """By the collective of each group: who differs, who has not come."""
    by_number = {rank.number: rank for rank in ranks}
    late: list[tuple[RecordedCollective, tuple[int, ...], tuple[int, ...]]] = []
    for group, members in _find_groups(ranks).items():
        if found := _find_mismatch(group, members):
            return found
        pending = [rank.pending[group] for rank in members if group in rank.pending]
        if not pending:
            continue
        awaited = min(pending, key=lambda one: one.sequence)
        waiting = tuple(rank.number for rank in members if group in rank.pending)
        behind = tuple(rank.number for rank in members if _count_entered(rank, group) < awaited.sequence)
        unheard = tuple(rank.number for rank in ranks if not rank.process.has_answered)
        if behind or unheard:
            late.append((awaited, behind or unheard, waiting))
    if not late:
        return _find_unheard(ranks)
    culprits = Counter(number for _, behind, _ in late for number in behind)
    in_collective = {number for _, _, waiting in late for number in waiting}
    free = tuple(sorted(number for number in culprits if number not in in_collective))
    if not free:
        return _say_deadlock(late)
    collective, _, waiting = next(one for one in late if set(one[1]) & set(free))
    return _say_late([by_number[number] for number in free if number in by_number], collective, waiting)


def _find_groups(ranks: Sequence[StalledRank]) -> dict[str, list[StalledRank]]:
    """The ranks of each group that answered, by its list or as they were in it; the largest group first."""
    heard = [rank for rank in ranks if rank.process.has_answered]
    members: dict[str, set[int]] = {}
    for rank in heard:
        for group, one in rank.reached.items():
            members.setdefault(group, set()).update({rank.number}, read_ranges(one.ranks))
    found = {group: [rank for rank in heard if rank.number in numbers] for group, numbers in members.items()}
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def read_ranges(text: str) -> set[int]:
    """The numbers of "0-3,8"; none of a text that is something else."""
    numbers: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit() and len(first) < 8 and len(last) < 8):
            return set()
        numbers.update(range(int(first), min(int(last or first), int(first) + _MOST_RANKS) + 1))
    return numbers


def _count_entered(rank: StalledRank, group: str) -> int:
    """The number of the latest collective of the group that it has entered; 0: none."""
    return rank.reached[group].sequence if group in rank.reached else 0


def _find_mismatch(group: str, members: Sequence[StalledRank]) -> StallVerdict | None:
    pending = {rank.number: rank.pending[group] for rank in members if group in rank.pending}
    by_sequence: dict[int, dict[int, RecordedCollective]] = {}
    for number, one in pending.items():
        by_sequence.setdefault(one.sequence, {})[number] = one
    for sequence, entered in sorted(by_sequence.items()):
        for what, cause in (("name", "mismatched_collectives"), ("sizes", "mismatched_sizes")):
            kinds = Counter(getattr(one, what) for one in entered.values())
            if len(kinds) < 2 or (cause == "mismatched_sizes" and next(iter(entered.values())).name not in _SAME_SIZES):
                continue
            usual = kinds.most_common(1)[0][0]
            odd = tuple(sorted(n for n, one in entered.items() if getattr(one, what) != usual))
            first, other = entered[odd[0]], next(one for one in entered.values() if getattr(one, what) == usual)
            mine, theirs = (
                (first.name, other.name) if what == "name" else (f"{first.name} of {first.sizes}", other.sizes)
            )
            return StallVerdict(
                cause=cause,
                sentence=f"{_start(odd)} {_have(odd)} entered {mine} as number {sequence} of group {group}, "
                f"{_name_ranks(tuple(n for n in sorted(entered) if n not in odd))} {theirs}.",
                advice="let all ranks call the same collectives in the same order with the same sizes",
                ranks=odd,
                place=next(rank.own_line for rank in members if rank.number == odd[0]),
            )
    return None


_SAME_SIZES: Final = frozenset({"all_reduce", "reduce", "broadcast", "allreduce", "allreduce_coalesced"})


def _find_unheard(ranks: Sequence[StalledRank]) -> StallVerdict | None:
    """Ranks that are not in a collective, or do not answer, while others wait in one by their stacks."""
    waiting = [rank for rank in ranks if _waits_in_collective(rank)]
    held = [rank for rank in ranks if rank not in waiting]
    if not waiting or not held:
        return None
    return _say_late(held, None, tuple(rank.number for rank in waiting))


def _waits_in_collective(rank: StalledRank) -> bool:
    return bool(rank.pending) or (rank.is_in("torch/distributed/distributed_c10d.py") and not rank.computes)


def _say_late(
    held: Sequence[StalledRank], collective: RecordedCollective | None, waiting: Sequence[int]
) -> StallVerdict:
    cause, place = find_cause(held[0])
    alike = [rank for rank in held if find_cause(rank)[0] is cause]
    numbers = tuple(rank.number for rank in alike)
    what = "a collective"
    if collective is not None:
        what = f"{collective.name} {collective.sequence:,} of group {collective.group}"
    node = alike[0].process.node if len(alike) == 1 else ""
    verb, whom = "waits" if len(waiting) == 1 else "wait", "it" if len(alike) == 1 else "them"
    others = f"{_start(waiting)} {verb} for {whom}"
    where = f" Its node is {node}." if node else ""
    return StallVerdict(
        cause=cause.name,
        sentence=f"{_start(numbers)} {_have(numbers)} not entered {what}: {_say_cause(alike, cause, place)}. "
        f"{others}.{where}",
        advice=cause.advice,
        ranks=numbers,
        place=place,
    )


def _say_deadlock(late: Sequence[tuple[RecordedCollective, tuple[int, ...], tuple[int, ...]]]) -> StallVerdict:
    parts = [f"{_name_ranks(waiting)} in {one.name} of group {one.group}" for one, _, waiting in late[:_SHOWN]]
    return StallVerdict(
        cause="deadlock",
        sentence=f"Ranks wait for each other in different groups: {'; '.join(parts)}.",
        advice="let all ranks enter the collectives of different groups in the same order",
        ranks=tuple(sorted({number for _, _, waiting in late for number in waiting})),
    )


def _find_alone(ranks: Sequence[StalledRank]) -> StallVerdict:
    """No rank waits for another one by what is known: what they are at themselves."""
    causes = {rank.number: find_cause(rank) for rank in ranks}
    names = Counter(cause.name for cause, _ in causes.values())
    if len(names) == 1:
        cause, place = causes[ranks[0].number]
        if all(_waits_in_collective(rank) for rank in ranks):
            return StallVerdict(
                cause="collective",
                sentence="All ranks are in a collective, and all have entered it: the network or a device holds it up.",
                advice="look at the network between the nodes and at the devices (NCCL_DEBUG=INFO, dmesg)",
                place=place,
            )
        numbers = tuple(rank.number for rank in ranks)
        return StallVerdict(
            cause=cause.name,
            sentence=f"{_start(numbers)} {_say_cause(ranks, cause, place, first=True)}.",
            advice=cause.advice,
            ranks=numbers,
            place=place,
        )
    text = "It cannot be told which rank the others wait for: their stacks differ, and no collective says more."
    return StallVerdict(cause="unknown", sentence=text, advice="look at the groups of stacks below, the smallest first")


def _say_cause(ranks: Sequence[StalledRank], cause: StallCause, place: CodePlace | None, *, first: bool = False) -> str:
    verb = cause.says
    if len(ranks) > 1:
        words = verb.split(" ", 1)
        plural = {"is": "are", "waits": "wait", "runs": "run", "writes": "write", "compiles": "compile", "does": "do"}
        verb = " ".join([plural[words[0]], *words[1:]])
    subject = "" if first else ("it " if len(ranks) == 1 else "they ")
    line = f" ({place.file.rpartition('/')[2]}:{place.line} {place.function})" if place is not None else ""
    return f"{subject}{verb}{line}"


def _say_waiting(ranks: Sequence[StalledRank]) -> str:
    waiting = [rank for rank in ranks if _waits_in_collective(rank)]
    if not waiting:
        return "The others run"
    one = next((collective for rank in waiting for collective in rank.pending.values()), None)
    what = f"{one.name} {one.sequence:,} of group {one.group}" if one is not None else "a collective"
    return f"{_start([rank.number for rank in waiting])} wait{'s' if len(waiting) == 1 else ''} in {what}"


def _name_ranks(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    if len(numbers) > _SHOWN:
        return f"{len(numbers)} ranks"
    return f"ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _start(numbers: Sequence[int]) -> str:
    """The same at the start of a sentence."""
    return _name_ranks(numbers).capitalize()


def _have(numbers: Sequence[int]) -> str:
    return "has" if len(numbers) == 1 else "have"


def _say_s(value_ns: int) -> str:
    return f"{value_ns / 1e9:.0f} s" if value_ns >= 10 * 10**9 else f"{value_ns / 1e9:.1f} s"
