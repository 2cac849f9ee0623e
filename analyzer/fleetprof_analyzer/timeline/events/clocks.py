"""Puts the chosen ranks onto one clock, by the collectives that all members leave together, and says how well.

Ranks of one host have its clock, which is nearer to the truth than ends that busy hosts note late; the collectives may
contradict that. Guarantees: pure; a rank whose clock cannot be tied to the others' keeps its own, with the reason.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from fleetprof_api.report.report import Rank

from fleetprof_analyzer.job.stragglers.judgement.reasons import Obstacle
from fleetprof_analyzer.job.stragglers.replay.alignment import Alignment, align_clocks, end_residuals, ends_together
from fleetprof_analyzer.job.stragglers.replay.matching import Matched, match
from fleetprof_analyzer.rank.communication.operations import RankOperations, UnreadableOperations, decode
from fleetprof_analyzer.trace.trace import Int64s
from fleetprof_analyzer.words.verdict_reasons import say_mismatch, say_reason


@dataclass(frozen=True, slots=True)
class Clocks:
    """`offset_ns` by source is to be added to a rank's own times; `apart` holds the reason of each that has none.

    Residuals are distances of a rank's end of a collective from the ranks' median end; None where none was matched.
    """

    offset_ns: dict[str, int] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    residual_median_ns: int | None = None
    residual_most_ns: int | None = None
    tied_by: str = ""
    matched: Matched | None = None


def tie_clocks(encoded: Sequence[tuple[str, bytes]], chosen: Sequence[Rank], job: Sequence[Rank]) -> Clocks:
    """`encoded` are (source, operations) of all ranks of the `job`."""
    sources = [entry.source for entry in chosen]
    hosts = {entry.source: entry.host_name for entry in job if entry.time_origin == "unix" and entry.host_name}
    if len(sources) < 2:
        return Clocks(offset_ns=dict.fromkeys(sources, 0))
    operations, unknown = _decode(encoded, sources)
    matched, reason = _match(operations)
    tied = None if matched is None else _tie_matched(matched, sources, hosts, unknown)
    if tied is not None and not tied.apart:
        return tied
    if one_host := _one_host(sources, hosts):
        return Clocks(offset_ns=dict.fromkeys(sources, 0), tied_by=one_host, matched=matched)
    return tied or Clocks(apart={source: unknown.get(source, reason) for source in sources})


def _match(operations: Sequence[RankOperations]) -> tuple[Matched | None, str]:
    """The operations that belong together on the ranks, or the reason that none do."""
    if len(operations) < 2:
        return None, "the collectives of no other rank are known"
    matched = match(operations)
    if matched.mismatch is not None:
        return None, say_mismatch(matched.mismatch)
    if matched.guessed and not ends_together(matched):
        return None, say_reason(Obstacle.SEVERAL_GROUPS)
    return matched, ""


def _tie_matched(matched: Matched, sources: Sequence[str], hosts: dict[str, str], unknown: dict[str, str]) -> Clocks:
    found = align_clocks(matched)
    offsets = _share_hosts(matched, found, hosts)
    left = end_residuals(matched, offsets, found.aligned)
    offset = {
        one.source: int(offset)
        for one, offset, aligned in zip(matched.ranks, offsets, found.aligned, strict=True)
        if aligned and one.source in sources
    }
    if len(offset) < 2:
        offset = {}
    words = "it shares no collective that all leave together with the other ranks"
    return Clocks(
        offset_ns=offset,
        apart={source: unknown.get(source, words) for source in sources if source not in offset},
        residual_median_ns=int(np.median(left)) if len(left) else None,
        residual_most_ns=int(left.max()) if len(left) else None,
        tied_by=_tied_by(matched.method, sources, hosts, shared=bool((offsets != found.offset_ns).any())),
        matched=matched,
    )


def _tied_by(method: str, sources: Sequence[str], hosts: dict[str, str], *, shared: bool) -> str:
    if not shared:
        return method
    return _one_host(sources, hosts) or f"{method} and the clock of each host"


def _one_host(sources: Sequence[str], hosts: dict[str, str]) -> str:
    """Words where all ran on one host; "" where they did not, or do not say it."""
    names = {hosts.get(source, "") for source in sources}
    return f"the clock of their host {names.pop()[:80]}" if len(names) == 1 and "" not in names else ""


def _share_hosts(matched: Matched, found: Alignment, hosts: dict[str, str]) -> Int64s:
    """One offset for the ranks of a host, where theirs differ by no more than ends of one collective do."""
    of_host: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(matched.ranks):
        if found.aligned[number] and one.source in hosts:
            of_host[hosts[one.source]].append(number)
    offset = found.offset_ns.copy()
    for members in of_host.values():
        first = int(offset[members[0]])
        middle = first + int(np.median(offset[members] - first))
        if np.abs(offset[members] - middle).max() <= found.residual_most_ns:
            offset[members] = middle
    # The first rank's clock stays where it is.
    return offset - offset[0] if found.aligned[0] else offset


def _decode(
    encoded: Sequence[tuple[str, bytes]], sources: Sequence[str]
) -> tuple[list[RankOperations], dict[str, str]]:
    """(operations of distinct ranks, why the others have none)."""
    read: list[RankOperations] = []
    unknown = dict.fromkeys(sources, "its trace holds no collective")
    for source, data in encoded:
        try:
            if data:
                read.append(decode(data))
                unknown.pop(source, None)
        except UnreadableOperations as error:
            unknown[source] = str(error)
    count = Counter(one.rank for one in read)
    for one in read:
        if one.rank is None:
            unknown[one.source] = "its trace does not say which rank it is"
        elif count[one.rank] > 1:
            unknown[one.source] = f"{count[one.rank]} traces claim rank {one.rank}"
        elif not one.iterations:
            unknown[one.source] = "its trace holds no whole iteration"
    return [one for one in read if one.source not in unknown], unknown
