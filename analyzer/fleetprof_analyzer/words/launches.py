"""Launches and copies of a report in words and sums; the same for terminal and page.

Guarantees: sums over ranks are exact; a rank that recorded a sample of its operators only is marked, for its launches
and idle causes mean little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from fleetprof_api.quantities import duration, rate, share, size
from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.words.text import rank_name

SAMPLED_PERMILLE: Final = 500
_FEW: Final = 4
_MOST_RANKS: Final = 8


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of one direction over all ranks: size in words; rate of the middle rank, None where no rank tells."""

    words: str
    count: int
    total_ns: int
    size: str
    bytes_per_s: int | None


def add_copies(ranks: Sequence[Rank]) -> list[Copies]:
    """By direction and kind of host memory, the longest first."""
    by_kind: dict[tuple[str, bool], list[tuple[int, int, int, int | None]]] = {}
    for rank in ranks:
        for copy in rank.copies:
            of_kind = by_kind.setdefault((copy.kind, copy.pageable), [])
            of_kind.append((copy.count, copy.total_ns, copy.bytes, copy.bytes_per_s))
    found = []
    for (kind, pageable), parts in by_kind.items():
        rates = [rate for *_, rate in parts if rate is not None]
        count, total_ns, size_bytes = (sum(part[column] for part in parts) for column in range(3))  # type: ignore[misc]
        words = f"{kind}, pageable" if pageable else kind
        found.append(Copies(words, count, total_ns, _say_size(size_bytes, parts), median_low(rates) if rates else None))
    return sorted(found, key=lambda copies: (-copies.total_ns, copies.words))


def _say_size(size_bytes: int, parts: Sequence[tuple[int, int, int, int | None]]) -> str:
    """Rows without a size count nothing: what no row of a rank says is no size of 0 bytes."""
    silent = sum(rate is None and not of_rank for *_, of_rank, rate in parts)
    if silent == len(parts):
        return "size not recorded"
    return f"at least {size(size_bytes)}" if silent else size(size_bytes)


def find_sampled(ranks: Sequence[Rank]) -> list[str]:
    """The ranks whose traces hold a sample of the operators that ran."""
    return [
        rank_name(rank.rank)
        for rank in ranks
        if rank.recorded_permille is not None and rank.recorded_permille < SAMPLED_PERMILLE
    ]


def list_sampled(ranks: Sequence[Rank]) -> list[str]:
    """A warning for a terminal; none where every operator was recorded."""
    sampled = find_sampled(ranks)
    if not sampled:
        return []
    shown = ", ".join(sampled[:_MOST_RANKS]) + (", …" if len(sampled) > _MOST_RANKS else "")
    return [f"    Rank {shown}: the trace has only a sample of the operators, so idle causes and launches mean little"]


def list_launches(report: Report) -> list[str]:
    """Launches and copies over all ranks."""
    known = [(rank, rank.launches) for rank in report.ranks if rank.launches is not None and rank.launches.launches]
    if not known:
        return []
    rows = sum(launches.launches for _, launches in known)
    short, saving = sum(found.short for _, found in known), sum(found.graph_saving_ns for _, found in known)
    late, delay = max(found.delay_p99_ns for _, found in known), median_low(found.delay_p50_ns for _, found in known)
    span = sum(rank.time_ns.span for rank, _ in known)
    tiny, saved = share(short, rows), share(saving, span)
    lines = [
        "Launches and copies",
        f"  from call to start {duration(delay)} in the middle, 99 % within {duration(late)}",
        f"  {tiny} of the work runs shorter than its call; CUDA graphs could save at most {saved}",
    ]
    for copies in add_copies(report.ranks)[:_FEW]:
        speed = "" if copies.bytes_per_s is None else f", {rate(copies.bytes_per_s)}"
        lines.append(f"  {duration(copies.total_ns):>10} {copies.count:>8} × {copies.words}: {copies.size}{speed}")
    return lines
