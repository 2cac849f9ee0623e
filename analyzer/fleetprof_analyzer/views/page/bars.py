"""The page's time bars: the whole job's, and one per rank.

Guarantees: hold up from one rank to a thousand (rows for few, columns for many); each has a text alternative; nothing
is drawn that the report does not hold.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.quantities import duration, round_duration, share
from fleetprof_api.report.report import Rank, TimeBreakdown
from markupsafe import Markup

from fleetprof_analyzer.views import svg
from fleetprof_analyzer.views.text import parts_of, rank_name

_WIDTH: Final = 1000
_LEFT: Final = 64
_RIGHT: Final = 16
_MOST_ROWS: Final = 32


def time_bar(time_ns: TimeBreakdown, height: int = 46) -> Markup:
    """One bar: compute (its part under communication hatched), exposed communication, exposed memory, idle."""
    described = ", ".join(f"{words} {share(part, time_ns.span)}" for _, words, part in parts_of(time_ns))
    return svg.chart(_WIDTH, height, f"Where the time went: {described}", *_stack(time_ns, 0, 0, _WIDTH, height, ""))


def _stack(time_ns: TimeBreakdown, x: float, y: float, width: float, height: float, who: str) -> list[Markup]:
    """The parts of one breakdown side by side, with percentages where they fit."""
    drawn = []
    scale = width / time_ns.span if time_ns.span else 0.0
    for name, words, part in parts_of(time_ns):
        if not part:
            continue
        tip = f"{who}{words}: {duration(part)}, {share(part, time_ns.span)}"
        drawn.append(svg.rectangle(x, y, part * scale, height, name, tip))
        if name == "compute" and time_ns.overlapped_communication:
            hidden = time_ns.overlapped_communication
            tip = f"{who}communication under compute: {duration(hidden)}, {share(hidden, time_ns.span)}"
            drawn.append(svg.rectangle(x + (part - hidden) * scale, y, hidden * scale, height, "overlapped", tip))
        if height > 30 and part * scale > 64:
            label = share(part, time_ns.span)
            drawn.append(svg.text(x + part * scale / 2, y + height / 2 + 5, label, f"on-{name}", "middle"))
        x += part * scale
    return drawn


def rank_bars(ranks: Sequence[Rank]) -> Markup:
    """The same bar for every rank on one scale: rows for few ranks, columns for many."""
    longest = max((rank.time_ns.span for rank in ranks), default=0)
    if not longest:
        return Markup("")
    return _rank_rows(ranks, longest) if len(ranks) <= _MOST_ROWS else _rank_columns(ranks, longest)


def _rank_rows(ranks: Sequence[Rank], longest: int) -> Markup:
    row, gap = (22, 6) if len(ranks) <= 16 else (13, 4)
    height = len(ranks) * (row + gap) + 26
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    drawn = _time_axis(longest, scale, height - 20)
    for number, rank in enumerate(ranks):
        y = number * (row + gap)
        who = f"rank {rank_name(rank.rank)}, "
        drawn.append(svg.text(_LEFT - 10, y + row / 2 + 4, rank_name(rank.rank), "label", "end"))
        drawn += _stack(rank.time_ns, _LEFT, y, rank.time_ns.span * scale, row, who)
    return svg.chart(_WIDTH, height, f"Time of each of {len(ranks)} ranks; the table below holds the numbers", *drawn)


def _time_axis(longest: int, scale: float, y: float) -> list[Markup]:
    drawn = []
    for value in svg.ticks(0, longest, 6):
        if value <= longest:
            drawn.append(svg.line(_LEFT + value * scale, 0, _LEFT + value * scale, y, "grid"))
            drawn.append(svg.text(_LEFT + value * scale, y + 16, round_duration(value), "tick", "middle"))
    return drawn


def _rank_columns(ranks: Sequence[Rank], longest: int) -> Markup:
    height, base = 260, 232
    pitch = (_WIDTH - _LEFT - _RIGHT) / len(ranks)
    width = pitch - 1 if pitch > 4 else pitch
    scale = (base - 8) / longest
    drawn = []
    for value in svg.ticks(0, longest, 4):
        if value <= longest:
            drawn.append(svg.line(_LEFT, base - value * scale, _WIDTH - _RIGHT, base - value * scale, "grid"))
            drawn.append(svg.text(_LEFT - 8, base - value * scale + 4, round_duration(value), "tick", "end"))
    every = max(1, len(ranks) // 12)
    for number, rank in enumerate(ranks):
        x, y = _LEFT + number * pitch, float(base)
        for name, words, part in parts_of(rank.time_ns):
            if not part:
                continue
            tip = f"rank {rank_name(rank.rank)}, {words}: {duration(part)}, {share(part, rank.time_ns.span)}"
            y -= part * scale
            drawn.append(svg.rectangle(x, y, width, part * scale, name, tip))
        if number % every == 0:
            drawn.append(svg.text(x + width / 2, base + 18, rank_name(rank.rank), "tick", "middle"))
    return svg.chart(_WIDTH, height, f"Time of each of {len(ranks)} ranks; the table below holds the numbers", *drawn)
