"""Builds SVG for the page: elements whose text and attributes are always escaped, axes with round numbers.

Guarantees: no style attribute and no script (the page's content policy allows neither); colours come from CSS classes.
"""

import math
from collections.abc import Iterable

from markupsafe import Markup, escape

from fleetprof_analyzer.views.text import plain


def element(name: str, *children: str, **attributes: str | float | int) -> Markup:
    """One element. Trailing underscores of attribute names are dropped, others become hyphens."""
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _shown(value)) for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, Markup("").join(escape(child) for child in children))


def chart(width: int, height: int, description: str, *children: str) -> Markup:
    """A whole drawing, with the text that stands for it where it cannot be seen."""
    return element(
        "svg",
        element("title", plain(description, 500)),
        *children,
        viewBox=f"0 0 {width} {height}",
        role="img",
        class_="chart",
    )


def rectangle(x: float, y: float, width: float, height: float, class_: str, tip: str = "") -> Markup:
    """A filled rectangle with an optional tool tip."""
    tips = [element("title", plain(tip, 300))] if tip else []
    return element("rect", *tips, x=x, y=y, width=max(0.0, width), height=height, class_=class_)


def text(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> Markup:
    """A line of text; `anchor` is start, middle or end."""
    return element("text", plain(words, 120), x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line from (x1, y1) to (x2, y2), in the picture's units."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def polyline(points: Iterable[tuple[float, float]], class_: str, tip: str = "") -> Markup:
    """A line through points."""
    tips = [element("title", plain(tip, 300))] if tip else []
    path = " ".join(f"{_shown(x)},{_shown(y)}" for x, y in points)
    return element("polyline", *tips, points=path, class_=class_)


def polygon(points: Iterable[tuple[float, float]], class_: str, tip: str = "") -> Markup:
    """A filled area with its corners."""
    tips = [element("title", plain(tip, 300))] if tip else []
    path = " ".join(f"{_shown(x)},{_shown(y)}" for x, y in points)
    return element("polygon", *tips, points=path, class_=class_)


def circle(x: float, y: float, radius: float, class_: str, tip: str = "") -> Markup:
    """A dot with an optional tool tip."""
    tips = [element("title", plain(tip, 300))] if tip else []
    return element("circle", *tips, cx=x, cy=y, r=radius, class_=class_)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about `wanted` of them."""
    extent = high - low
    if extent <= 0 or not math.isfinite(extent):
        return [low, low + 1]
    raw = extent / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # Far from zero neighbours may be one and the same number.
    marks = list(dict.fromkeys(number * step for number in range(first, last + 1)))
    return marks if len(marks) > 1 else [low, high]


def _shown(value: str | float | int) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
