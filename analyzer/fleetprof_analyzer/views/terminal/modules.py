"""The tree of modules as text for a terminal: time, memory and the line of code of each module.

Guarantees: no line longer than the width (at least 60); no control character of a trace reaches the terminal; what is
in no module is said.
"""

from textwrap import wrap
from typing import Any, Final

import msgspec
from fleetprof_api.quantities import duration, share, size
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree

from fleetprof_analyzer.words.modules import (
    describe_iteration,
    list_held,
    list_remarks,
    name_inside,
    place_of_call,
    roof_of,
    speed_of,
    star_of,
    whole_of,
    work_of,
)
from fleetprof_analyzer.words.text import plain

_NARROWEST = 60
_BAR = 10
_SHORT_NS = 1_000_000
_TOGETHER = "\N{NO-BREAK SPACE}"
_AS_THEY_ARE: Final[dict[str, Any]] = {"break_on_hyphens": False, "drop_whitespace": True, "replace_whitespace": False}


def cut_modules(tree: ModuleTree, depth: int) -> ModuleTree:
    """The tree with `depth` levels; times of what is left out lie in the nodes around it."""
    kept = [node for node in tree.nodes if node.depth < depth]
    return msgspec.structs.replace(tree, nodes=kept, left_out=tree.left_out + len(tree.nodes) - len(kept))


def render_modules(tree: ModuleTree, width: int = 100) -> str:
    """The tree in lines of at most `width` characters."""
    width = max(width, _NARROWEST)
    lines = wrap(describe_iteration(tree), width)
    around: list[str] = []
    for node in tree.nodes:
        del around[node.depth :]
        text = _describe(tree, node, around[-1] if around else "")
        folded = wrap(text, width, subsequent_indent=" " * min(22 + 2 * node.depth, width // 2), **_AS_THEY_ARE)
        lines += [line.replace(_TOGETHER, " ") for line in folded]
        around.append(node.name)
    for remark in list_remarks(tree):
        lines += wrap(remark, width)
    return "\n".join(lines) + "\n"


def _describe(tree: ModuleTree, node: ModuleNode, around: str) -> str:
    whole, time_ns = whole_of(tree), work_of(tree, node)
    bar = "█" * round(_BAR * time_ns / whole) if whole else ""
    name = name_inside(node, around)
    star = star_of(tree, node)
    its_class = f" {plain(node.class_name, 40)}" if node.class_name and node.class_name != name else ""
    line = f"{share(time_ns, whole):>7} {bar:<{_BAR}} {'  ' * node.depth}{name}{star}{its_class}"
    facts = [place] if (place := place_of_call(node)) else []
    facts.append(duration(time_ns))
    if node.calls != 1:
        facts.append(f"{node.calls} calls")
    part = "device_ns" if tree.whole.device_ns else "host_ns"
    facts += [
        f"{words} {duration(value)}"
        for words, value in (
            ("backward", getattr(node.backward, part)),
            ("again in backward", getattr(node.recompute, part)),
        )
        if value
    ]
    launches = node.forward.launches + node.backward.launches + node.recompute.launches
    facts += [f"{launches:,} launches"] if launches else []
    facts += [speed] if (speed := speed_of(tree, node)) else []
    facts += [roof] if (roof := roof_of(node)) else []
    facts += [f"outputs {size(node.output_bytes)}"] if node.output_bytes else []
    facts += list_held(node)
    facts += [f"forward runs {duration(node.elapsed_ns)}"] if _waits(node) else []
    facts += [f"rank {node.slowest_rank} {duration(node.slowest_ns)}"] if _differs(node, time_ns) else []
    return line + "  " + ", ".join(fact.replace(" ", _TOGETHER) for fact in facts)


def _waits(node: ModuleNode) -> bool:
    """Tells whether Python and waits take more of its forward than operators."""
    return node.elapsed_ns > 2 * node.forward.host_ns + _SHORT_NS


def _differs(node: ModuleNode, time_ns: int) -> bool:
    """Tells whether one rank takes a fifth longer than the mean."""
    return node.slowest_ns is not None and node.slowest_rank is not None and 5 * node.slowest_ns > 6 * time_ns
