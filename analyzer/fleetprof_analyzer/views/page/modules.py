"""The page's picture and table of modules: what is inside a module lies below it, as wide as its time.

Guarantees: nothing is drawn that the report does not hold; the picture has a text alternative, and the largest modules
stand in a table.
"""

from typing import Final

from fleetprof_api.quantities import duration, flops, share, size
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree
from markupsafe import Markup

from fleetprof_analyzer.views import svg
from fleetprof_analyzer.views.page.table import Heading, PageTable, make_table
from fleetprof_analyzer.views.text import plain
from fleetprof_analyzer.views.words.module_words import (
    HELD,
    flops_of,
    name_inside,
    place_of_call,
    speed_of,
    whole_of,
    work_of,
)

_WIDTH: Final = 1000
_ROW: Final = 24
_GAP: Final = 1
_NARROWEST: Final = 1
_CHARACTER: Final = 7  # a label is drawn where it fits
_DEEPEST: Final = 12
_MOST_ROWS: Final = 24


def draw_modules(tree: ModuleTree) -> Markup:
    """The tree, its roots on top; the width is the work of the iteration."""
    whole = whole_of(tree)
    scale = _WIDTH / whole if whole else 0.0
    drawn: list[Markup] = []
    ends: list[tuple[float, float, str]] = [(0.0, float(_WIDTH), "")]  # by depth: where the next begins, limit, name
    for node in tree.nodes:
        if node.depth >= min(len(ends), _DEEPEST):
            continue
        del ends[node.depth + 1 :]
        x, limit, around = ends[node.depth]
        width = min(work_of(tree, node) * scale, limit - x)
        ends[node.depth] = (x + width, limit, around)
        ends.append((x, x + width, node.name))
        if width >= _NARROWEST:
            drawn += _draw(tree, node, x, width, around)
    depth = 1 + max((node.depth for node in tree.nodes), default=0)
    height = min(depth, _DEEPEST) * _ROW
    return svg.chart(_WIDTH, height, "Time by module; the table below holds the largest", *drawn)


def _draw(tree: ModuleTree, node: ModuleNode, x: float, width: float, around: str) -> list[Markup]:
    time_ns = work_of(tree, node)
    place = place_of_call(node)
    tip = (
        f"{plain(node.name, 160)}: {duration(time_ns)}, {share(time_ns, whole_of(tree))}{', ' if place else ''}{place}"
    )
    y = node.depth * _ROW
    drawn = [svg.rectangle(x, y, max(width - _GAP, _NARROWEST), _ROW - _GAP, "compute", tip)]
    label = name_inside(node, around)
    if len(label) * _CHARACTER <= width:
        drawn.append(svg.text(x + width / 2, y + _ROW / 2 + 4, label, "on-compute", "middle"))
    return drawn


def tabulate_modules(tree: ModuleTree) -> PageTable:
    """The modules whose own work takes longest, without that of modules inside."""
    columns = [
        Heading("Module", "name"), Heading("Class", "left"), Heading("Share", stays=True),
        Heading("Own work", stays=True), Heading("Own share", stays=True), Heading("Forward"), Heading("Backward"),
        Heading("Again in backward"), Heading("Launches"), Heading("FLOP"), Heading("FLOP/s"), Heading("Calls"),
        Heading("Outputs"), *(Heading(words.capitalize()) for words in HELD.values()),
        Heading("Called at", "left"), Heading("Slowest rank"),
    ]  # fmt: skip
    field = "device_ns" if tree.whole.device_ns else "host_ns"
    largest = sorted(tree.nodes, key=lambda node: -int(getattr(node.own, field)))[:_MOST_ROWS]
    return make_table(columns, (_cells(tree, node, field) for node in largest))


def _cells(tree: ModuleTree, node: ModuleNode, field: str) -> list[str | Markup]:
    whole = whole_of(tree)
    own = getattr(node.own, field)
    parts = (node.forward, node.backward, node.recompute)
    return [
        plain(node.name, 80),
        plain(node.class_name, 40),
        share(work_of(tree, node), whole),
        duration(own),
        share(own, whole),
        *(duration(getattr(part, field)) for part in parts),
        str(sum(part.launches for part in parts)),
        flops(operations) if (operations := flops_of(node)) else "–",
        speed_of(tree, node) or "–",
        str(node.calls),
        "–" if node.output_bytes is None else size(node.output_bytes),
        *("–" if (held := getattr(node, name)) is None else size(held) for name in HELD),
        place_of_call(node),
        "–" if node.slowest_rank is None else f"{node.slowest_rank}: {duration(node.slowest_ns)}",
    ]
