"""Ranks in words: one, a few, or the first few of many; and ordinal numbers.

Guarantees: pure; at most eight numbers.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.stragglers import LateHost, Straggler, Stragglers

_MOST_NAMED: Final = 8


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 3 and 5`, `ranks 0, 1, 2 and 5 more`."""
    return name_numbers("rank", ranks)


def name_run(ranks: Sequence[int]) -> str:
    """`ranks 8 to 15` where none between is left out."""
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return name_ranks(ranks)


def name_rank(one: Straggler) -> str:
    """`rank 2 on gpu-07`."""
    return f"rank {one.rank} on {one.host}" if one.host else f"rank {one.rank}"


def name_host(host: LateHost) -> str:
    """`the node gpu-07 (ranks 8 to 15)`."""
    return f"the node {host.name} ({name_run(host.ranks)})"


def name_hosts(hosts: Sequence[LateHost]) -> str:
    """`the nodes gpu-07 (ranks 8 to 15) and gpu-09 (ranks 24 to 31)`."""
    if len(hosts) == 1:
        return name_host(hosts[0])
    *first, last = [f"{host.name} ({name_run(host.ranks)})" for host in hosts]
    return f"the nodes {', '.join(first)} and {last}"


def find_rest(found: Stragglers) -> list[Straggler]:
    """The late ranks that are late by themselves, not with their host."""
    whole = {rank for host in found.hosts for rank in host.ranks}
    return [one for one in found.ranks if one.rank not in whole]


def is_slower_of_two(found: Stragglers) -> bool:
    """Tells whether one late host is beside one other, so that which of them is unusual cannot be told."""
    return len(found.hosts) == 1 and found.hosts[0].others == 1


def name_stragglers(ranks: Sequence[Straggler]) -> str:
    """`rank 2 on gpu-07`; of several, with the host if they share it."""
    if len(ranks) == 1:
        return name_rank(ranks[0])
    (host, *others) = {one.host for one in ranks}
    return name_ranks([one.rank for one in ranks]) + (f" on {host}" if host and not others else "")


def name_numbers(noun: str, numbers: Sequence[int]) -> str:
    """The same of other things that have numbers; `noun` is one of them."""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    if len(numbers) <= _MOST_NAMED:
        return f"{noun}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    return f"{noun}s {some(numbers)}"


def some(values: Sequence[object]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(map(str, values[:_MOST_NAMED]))
    return f"{shown} and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else shown


def say_ordinal(number: int) -> str:
    """`1st`, `12th`, `22nd`."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
