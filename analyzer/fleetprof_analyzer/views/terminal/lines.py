"""The work of a marked iteration by line of code, as text for a terminal.

Guarantees: no line longer than the width (at least 60); no control character of a trace reaches the terminal.
"""

from textwrap import wrap
from typing import Final

from fleetprof_api.quantities import duration, flops, share, size
from fleetprof_api.report.module_tree import ModuleTree

from fleetprof_analyzer.job.lines import LineWork, list_lines
from fleetprof_analyzer.words.modules import describe_iteration, name_modules, whole_of
from fleetprof_analyzer.words.text import plain

_NARROWEST: Final = 60
_MOST: Final = 40
_INDENT: Final = " " * 9


def render_lines(tree: ModuleTree, width: int = 100) -> str:
    """The lines with the most work, in lines of at most `width` characters."""
    width = max(width, _NARROWEST)
    found = list_lines(tree)
    lines = wrap(f"{describe_iteration(tree)}, by the line that calls a module; with all that is inside it.", width)
    for one in found[:_MOST]:
        lines += wrap(_describe(tree, one), width, subsequent_indent=_INDENT, break_on_hyphens=False)
    if len(found) > _MOST:
        lines.append(f"{len(found) - _MOST} lines more are not listed.")
    return "\n".join(lines) + "\n"


def _describe(tree: ModuleTree, one: LineWork) -> str:
    facts = [duration(one.time_ns), f"{one.calls:,} calls"]
    facts += [f"{one.launches:,} launches"] if one.launches else []
    facts += [f"{flops(one.flops * 1e9 / one.time_ns)}/s"] if one.flops and one.time_ns else []
    facts += [f"parameters {size(one.parameter_bytes)}"] if one.parameter_bytes else []
    facts += [f"saved for backward {size(one.saved_bytes)}"] if one.saved_bytes else []
    part = share(one.time_ns, whole_of(tree))
    return f"{part:>7}  {plain(one.file, 100)}:{one.line}  {name_modules(one.modules)}  {', '.join(facts)}"
