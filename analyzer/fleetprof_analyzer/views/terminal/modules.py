"""The tree of modules as text for a terminal: time, memory and the line of code of each module.

Guarantees: no line longer than the width (at least 60); no control character of a trace reaches the terminal; what is
in no module is said.
"""

from textwrap import wrap
from typing import Any, Final

import msgspec
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree

from fleetprof_analyzer.job.modules import time_of
from fleetprof_analyzer.views.text import duration, plain, share, size

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
    by_device = tree.whole.device_ns > 0
    whole = tree.whole.device_ns if by_device else tree.whole.host_ns
    what = "device work" if by_device else "operators"
    ranks = f", mean of {tree.ranks} ranks" if tree.ranks > 1 else ""
    lines = [f"Modules of one iteration of {duration(tree.iteration_ns)} ({what} {duration(whole)}{ranks})"]
    around: list[str] = []
    for node in tree.nodes:
        del around[node.depth :]
        text = _describe(node, around[-1] if around else "", whole, by_device)
        folded = wrap(text, width, subsequent_indent=" " * min(22 + 2 * node.depth, width // 2), **_AS_THEY_ARE)
        lines += [line.replace(_TOGETHER, " ") for line in folded]
        around.append(node.name)
    named = [
        ("in modules", tree.in_modules),
        ("backward of no known module", tree.unassigned_backward),
        ("collectives", tree.communication),
    ]
    parts = [(words, part.device_ns if by_device else part.host_ns) for words, part in named]
    parts.append(("elsewhere (optimizer, loss, data)", whole - sum(part for _, part in parts)))
    sentence = ", ".join(f"{words} {share(part, whole)}" for words, part in parts if part)
    lines += wrap(f"Of it {sentence}.", width)
    if tree.left_out:
        lines += wrap(f"{tree.left_out} modules more are not listed: their time is in those around them.", width)
    if tree.ended_early:
        lines += wrap("Something was compiled meanwhile: what came later in the iteration is missing.", width)
    return "\n".join(lines) + "\n"


def _describe(node: ModuleNode, around: str, whole: int, by_device: bool) -> str:
    time_ns = time_of(node, by_device=by_device)
    bar = "█" * round(_BAR * time_ns / whole) if whole else ""
    name = plain(node.name.removeprefix(f"{around}."), 80)
    its_class = f" {plain(node.class_name, 40)}" if node.class_name and node.class_name != name else ""
    line = f"{share(time_ns, whole):>7} {bar:<{_BAR}} {'  ' * node.depth}{name}{its_class}"
    facts = [f"{plain(_base(node.call_file), 60)}:{node.call_line}"] if node.call_line else []
    facts.append(duration(time_ns))
    if node.calls != 1:
        facts.append(f"{node.calls} calls")
    part = "device_ns" if by_device else "host_ns"
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
    facts += [f"outputs {size(node.output_bytes)}"] if node.output_bytes else []
    facts += [f"parameters {size(node.parameter_bytes)}"] if node.parameter_bytes else []
    facts += [f"forward runs {duration(node.elapsed_ns)}"] if _waits(node) else []
    facts += [f"rank {node.slowest_rank} {duration(node.slowest_ns)}"] if _differs(node, time_ns) else []
    return line + "  " + ", ".join(fact.replace(" ", _TOGETHER) for fact in facts)


def _waits(node: ModuleNode) -> bool:
    """Whether more of its forward is Python and waits than operators."""
    return node.elapsed_ns > 2 * node.forward.host_ns + _SHORT_NS


def _differs(node: ModuleNode, time_ns: int) -> bool:
    """Whether one rank takes a fifth longer than the mean."""
    return node.slowest_ns is not None and node.slowest_rank is not None and 5 * node.slowest_ns > 6 * time_ns


def _base(file: str) -> str:
    return file.rpartition("/")[2] or file
