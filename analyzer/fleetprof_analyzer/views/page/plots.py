"""The page's plots: iterations, starts, capture cost, samples.

Guarantees: hold up from one rank to a thousand (beyond `_MOST_LINES` lines become a band with its median); each has a
text alternative; vertical axes of quantities begin at zero.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from fleetprof_api.quantities import duration, mark, round_duration
from fleetprof_api.report.capture_cost import CaptureCost, Phase
from fleetprof_api.report.report import Rank, Series
from fleetprof_api.report.start_skew import StartSkew
from markupsafe import Markup

from fleetprof_analyzer.views import svg
from fleetprof_analyzer.views.text import plain, rank_name

_WIDTH: Final = 1000
_LEFT: Final = 64
_RIGHT: Final = 16
_MINI_WIDTH: Final = 320
_MOST_LINES: Final = 12
_MOST_ROWS: Final = 32
_BAND_BINS: Final = 80
_COLOURS: Final = 6

Line = tuple[str, list[tuple[float, float]]]
"""A name and its (x, y) points."""


def iteration_chart(ranks: Sequence[Rank]) -> Markup:
    """Duration of every iteration on every rank."""
    lines: list[Line] = [
        (f"rank {rank_name(rank.rank)}", [(float(i.index), float(i.duration_ns)) for i in rank.iterations])
        for rank in ranks
        if rank.iterations
    ]
    if not lines:
        return Markup("")
    described = f"Iteration time of {len(lines)} ranks; the table below holds the numbers"
    return _plot(lines, 250, described, duration_axis=True, unit="", whole_numbers=True)


def iteration_legend(ranks: Sequence[Rank]) -> list[tuple[str, str]]:
    """The meaning of its lines: (classes of a sample of the colour, words)."""
    return legend([f"rank {rank_name(rank.rank)}" for rank in ranks if rank.iterations])


def legend(names: Sequence[str]) -> list[tuple[str, str]]:
    """The legend of a plot with these lines."""
    if len(names) > _MOST_LINES:
        return [("band", f"smallest to largest of {len(names)}"), ("dot l0", f"median of {len(names)}")]
    return [(f"dot {_colour(number)}", plain(name, 60)) for number, name in enumerate(names)]


def _colour(number: int) -> str:
    """Classes of the number-th line: six colours, and once more with another stroke."""
    return f"l{number % _COLOURS}" + (" again" if number >= _COLOURS else "")


def start_chart(start: StartSkew) -> Markup:
    """When each rank's recording begins, after the earliest."""
    if start.spread_ns is None:
        return Markup("")
    earliest = min(rank.start_ns for rank in start.ranks)
    extent = max(start.spread_ns, 1000)
    few = len(start.ranks) <= _MOST_ROWS
    row = 20 if few else 0
    base = len(start.ranks) * row + 8 if few else 44
    scale = (_WIDTH - _LEFT - _RIGHT - 10) / svg.ticks(0, extent, 6)[-1]
    drawn = []
    for value in svg.ticks(0, extent, 6):
        x = _LEFT + value * scale
        drawn.append(svg.line(x, 0, x, base, "grid"))
        drawn.append(svg.text(x, base + 17, f"+{round_duration(value)}", "tick", "middle"))
    for number, rank in enumerate(start.ranks):
        late = rank.start_ns - earliest
        y = number * row + 12 if few else 22 + (number * 7 % 5 - 2) * 6
        step = "" if rank.first_step is None else f", first step {rank.first_step}"
        if few:
            drawn.append(svg.text(_LEFT - 10, y + 4, rank_name(rank.rank), "label", "end"))
        tip = f"rank {rank_name(rank.rank)}: {duration(late)} after the first{step}"
        drawn.append(svg.circle(_LEFT + late * scale, y, 5, "mark", tip))
    return svg.chart(
        _WIDTH, base + 24, f"Starts of {len(start.ranks)} ranks, spread {duration(start.spread_ns)}", *drawn
    )


def cost_chart(cost: CaptureCost) -> Markup:
    """Median iteration time of the three phases with intervals, on one scale from zero."""
    phases = [(words, phase) for words, phase in _phases(cost) if phase.median_ns is not None]
    if not phases:
        return Markup("")
    highest = max(max(phase.median_ns or 0, phase.median_high_ns or 0) for _, phase in phases)
    left = 120
    scale = (_WIDTH - left - _RIGHT - 130) / max(1, highest)
    drawn = []
    for number, (words, phase) in enumerate(phases):
        y = number * 38
        middle = phase.median_ns or 0
        drawn.append(svg.text(left - 10, y + 21, words, "label", "end"))
        drawn.append(svg.rectangle(left, y + 4, middle * scale, 24, f"phase {words}", f"{words}: {duration(middle)}"))
        right = middle
        if phase.median_low_ns is not None and phase.median_high_ns is not None:
            low, high = left + phase.median_low_ns * scale, left + phase.median_high_ns * scale
            right = max(right, phase.median_high_ns)
            drawn.append(svg.line(low, y + 16, high, y + 16, "whisker"))
            drawn += [svg.line(x, y + 10, x, y + 22, "whisker") for x in (low, high)]
        note = f"{duration(middle)}  ({phase.iterations} iterations)"
        drawn.append(svg.text(left + right * scale + 10, y + 21, note, "tick"))
    return svg.chart(_WIDTH, len(phases) * 38, "Median iteration time before, during and after the capture", *drawn)


def _phases(cost: CaptureCost) -> list[tuple[str, Phase]]:
    return [("before", cost.before), ("during", cost.during), ("after", cost.after)]


def series_chart(named: Sequence[tuple[str, Series]], window: tuple[int, int] | None) -> Markup:
    """One quantity over time on all ranks or hosts that have it; the recorded window is shaded."""
    origin = min(series.at_unix_ns[0] for _, series in named)
    lines: list[Line] = [
        (
            name,
            [
                ((at - origin) / 1e9, value)
                for at, value in zip(series.at_unix_ns, series.values, strict=True)
                if value is not None
            ],
        )
        for name, series in named
    ]
    first = named[0][1]
    shade = None if window is None else ((window[0] - origin) / 1e9, (window[1] - origin) / 1e9)
    described = f"{first.name.replace('_', ' ')} over time, {first.unit}, {len(named)} series"
    return _plot(lines, 110, described, unit=first.unit, width=_MINI_WIDTH, shade=shade)


def _plot(
    lines: Sequence[Line],
    height: int,
    description: str,
    *,
    unit: str,
    duration_axis: bool = False,
    whole_numbers: bool = False,
    width: int = _WIDTH,
    shade: tuple[float, float] | None = None,
) -> Markup:
    """Lines over a common x, from zero on y; more than `_MOST_LINES` lines become a band and its median."""
    small = width < _WIDTH
    left, right, base = (52 if small else _LEFT + 10), (8 if small else 24), height - 24
    points = [point for _, line in lines for point in line]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    highest = max(y for _, y in points) or 1.0
    # Round numbers of bytes are round in KiB, MiB or GiB.
    step = 1 << 10 * (max(0, int(highest).bit_length() - 1) // 10) if unit == "bytes" else 1
    marks = [value * step for value in svg.ticks(0, highest / step, 2 if small else 4)]
    scale_x = (width - left - right) / ((high_x - low_x) or 1.0)
    scale_y = (base - 8) / marks[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        centred = left + (width - left - right) / 2 if high_x == low_x else left + (x - low_x) * scale_x
        return centred, base - y * scale_y

    drawn = []
    if shade is not None and shade[1] > low_x and shade[0] < high_x:
        begin, end = place(max(shade[0], low_x), 0)[0], place(min(shade[1], high_x), 0)[0]
        drawn.append(svg.rectangle(begin, 4, max(2.0, end - begin), base - 4, "window", "the recorded window"))
    for value in marks:
        shown = round_duration(value) if duration_axis else mark(value, unit)
        drawn.append(svg.line(left, base - value * scale_y, width - right, base - value * scale_y, "grid"))
        drawn.append(svg.text(left - 7, base - value * scale_y + 4, shown, "tick", "end"))
    for value in svg.ticks(low_x, high_x, 3 if small else 8):
        if low_x <= value <= high_x and (not whole_numbers or value == int(value)):
            label = f"{value:.0f}" if whole_numbers else f"{value:g} s"
            drawn.append(svg.text(place(value, 0)[0], base + 17, label, "tick", "middle"))
    if len(lines) <= _MOST_LINES:
        for number, (name, line) in enumerate(lines):
            drawn.append(svg.polyline([place(x, y) for x, y in line], f"line {_colour(number)}", name))
            if not small:
                drawn += [
                    svg.circle(*place(x, y), 4, f"dot {_colour(number)}", f"{name}, {x:.0f}: {duration(int(y))}")
                    for x, y in line
                ]
    else:
        drawn += _band(lines, place)
    return svg.chart(width, height, description, *drawn)


def _band(lines: Sequence[Line], place: Callable[[float, float], tuple[float, float]]) -> list[Markup]:
    """Smallest to largest value as an area, the median as a line."""
    points = sorted(point for _, line in lines for point in line)
    low, high = points[0][0], points[-1][0]
    bins: dict[int, list[tuple[float, float]]] = {}
    for x, y in points:
        bins.setdefault(int((x - low) * (_BAND_BINS - 1) / ((high - low) or 1.0)), []).append((x, y))
    middle = [(median(x for x, _ in inside), [y for _, y in inside]) for inside in bins.values()]
    upper = [place(x, max(values)) for x, values in middle]
    lower = [place(x, min(values)) for x, values in middle]
    return [
        svg.polygon([*upper, *reversed(lower)], "band", f"smallest to largest of {len(lines)}"),
        svg.polyline([place(x, median(values)) for x, values in middle], "line l0", f"median of {len(lines)}"),
    ]
