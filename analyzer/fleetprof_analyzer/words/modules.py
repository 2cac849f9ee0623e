"""The words about modules, the same in the terminal and on the page."""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.quantities import duration, flops, percent, share, size
from fleetprof_api.report.efficiency import Roof
from fleetprof_api.report.module_tree import HeldBytes, ModuleNode, ModuleTimes, ModuleTree

from fleetprof_analyzer.job.modules import time_of
from fleetprof_analyzer.words.text import plain

_FEW: Final = 2
_WHOLE: Final = 10
HELD: Final = {
    "parameter_bytes": "parameters",
    "gradient_bytes": "gradients",
    "optimizer_bytes": "optimizer's state",
    "saved_bytes": "saved for backward",
}


def whole_of(tree: ModuleTree) -> int:
    """The work of the marked iteration, ns: of the device, or of operators on the host where there is none."""
    return _amount(tree, tree.whole)


def work_of(tree: ModuleTree, node: ModuleNode) -> int:
    """The work of a module with all inside it, ns, of the same kind."""
    return time_of(node, by_device=tree.whole.device_ns > 0)


def flops_of(node: ModuleNode) -> int:
    """The floating-point operations of a module with all inside it."""
    return node.forward.flops + node.backward.flops + node.recompute.flops


def speed_of(tree: ModuleTree, node: ModuleNode) -> str:
    """`212 TFLOP/s` of its work, "" where no operations are known of it."""
    operations, time_ns = flops_of(node), work_of(tree, node)
    return f"{flops(operations * 1e9 / time_ns)}/s" if operations and time_ns else ""


def roof_of(node: ModuleNode) -> str:
    """`61 % of what memory allows, 12 FLOP/B`, "" where the device's peaks or the shapes are not known."""
    if not node.roof or node.roof_permille is None:
        return ""
    parts = node.forward, node.backward, node.recompute
    return say_roof(node.roof, node.roof_permille, flops_of(node), sum(part.moved_bytes for part in parts))


def say_roof(roof: Roof, permille: int, operations: int, moved_bytes: int) -> str:
    """The same of any work."""
    bound = "the peak" if roof == "compute" else "memory"
    if not operations or not moved_bytes:
        return f"{percent(permille / 10)} of what {bound} allows"
    intensity = operations / moved_bytes
    digits = f"{intensity:,.0f}" if intensity >= _WHOLE else f"{intensity:.2g}"
    return f"{percent(permille / 10)} of what {bound} allows, {digits} FLOP/B"


def list_held(node: ModuleNode | HeldBytes) -> list[str]:
    """`weights 2.1 MB`, `gradients 2.1 MB`, …: what is known and not nothing."""
    return [f"{words} {size(held)}" for name, words in HELD.items() if (held := getattr(node, name))]


def describe_iteration(tree: ModuleTree) -> str:
    """`Modules of one iteration of 120 ms (operators 100 ms, median of 5 iterations, mean of 2 ranks)`."""
    kind = "device work" if tree.whole.device_ns else "operators"
    ranks = f", mean of {tree.ranks} ranks" if tree.ranks > 1 else ""
    if tree.measured_iterations > 1:
        ranks = f", median of {tree.measured_iterations} iterations{ranks}"
    return f"Modules of one iteration of {duration(tree.iteration_ns)} ({kind} {duration(whole_of(tree))}{ranks})"


def list_remarks(tree: ModuleTree) -> list[str]:
    """Sentences on what is in no module, and on what is missing."""
    whole = whole_of(tree)
    parts = [
        ("in modules", _amount(tree, tree.in_modules)),
        ("of no known module", _amount(tree, tree.unmatched)),
        ("backward of no known module", _amount(tree, tree.unassigned_backward)),
        ("collectives", _amount(tree, tree.communication)),
    ]
    parts.append(("elsewhere (optimizer, loss, data)", whole - sum(part for _, part in parts)))
    remarks = [f"Of it {', '.join(f'{words} {share(part, whole)}' for words, part in parts if part > 0)}."]
    if held := list_held(tree.held):
        remarks.append(f"The modules hold, on one rank: {', '.join(held)}.")
    if tree.unmatched.operators:
        remarks.append(
            f"{_amount_of(tree.unmatched.operators)} unlike those of the marked iteration, which names modules: "
            "at most a module around them is known."
        )
    if tree.measured_iterations and (own := sum(not node.measured_iterations for node in tree.nodes)):
        modules = "1 module marked * varies: its" if own == 1 else f"{own} modules marked * vary: their"
        remarks.append(f"{modules} times are of the marked iteration alone, with its cost.")
    if tree.left_out:
        modules = "1 module more is" if tree.left_out == 1 else f"{tree.left_out} modules more are"
        remarks.append(f"{modules} not listed: their time is in those around them.")
    if tree.ended_early:
        remarks.append("Something was compiled meanwhile: what came later in the iteration is missing.")
    return remarks


def _amount_of(operators: int) -> str:
    return "1 operator of an iteration is" if operators == 1 else f"{operators:,} operators of an iteration are"


def star_of(tree: ModuleTree, node: ModuleNode) -> str:
    """`*` where a module's times are those of the marked iteration and others' are not."""
    return "*" if tree.measured_iterations and not node.measured_iterations else ""


def name_inside(node: ModuleNode, around: str) -> str:
    """A module's name without that of the module around it."""
    return plain(node.name.removeprefix(f"{around}."), 80)


def name_modules(names: Sequence[str]) -> str:
    """`Net.a, Net.b and 3 others`."""
    shown = ", ".join(plain(name, 80) for name in names[:_FEW])
    others = len(names) - _FEW
    return shown if others <= 0 else f"{shown} and {others} other{'s' if others > 1 else ''}"


def place_of_call(node: ModuleNode) -> str:
    """`train.py:14`, "" where nobody knows."""
    return f"{plain(node.call_file.rpartition('/')[2], 60)}:{node.call_line}" if node.call_line else ""


def _amount(tree: ModuleTree, times: ModuleTimes) -> int:
    return times.device_ns if tree.whole.device_ns else times.host_ns
