"""A module whose device work is many tiny launches.

Guarantees: pure; of modules inside each other it names the innermost that has most of the time; its gain is the time of
these launches, as a share of the marked iteration: what fusing them could save at most.
"""

from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.module_tree import ModuleNode

from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.job.modules import time_of
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

_KIND: Final = "tiny_launches"
_FEWEST: Final = 100  # launches in an iteration: fewer are no host's burden
_LONGEST_NS: Final = 10_000  # their mean: about what a launch costs the host
_MOST_OF_IT: Final = 0.8  # of the outer module's time: what the inner one must have to be named in its place
TINY_LAUNCHES: Final = SentenceGuard(
    place="finding tiny_launches",
    figure="module_tree.nodes, device time of a module",
    whole="module_tree.iteration_ns",
    least_permille=50,
    words="… runs in N launches of M µs",
    part="compute",
)


@dataclass(frozen=True, slots=True)
class TinyLaunches:
    """So many launches of one module in an iteration, `mean_ns` long each."""

    module: str
    launches: int
    mean_ns: int

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        return (
            f"{self.module} runs in {self.launches:,} launches of {self.mean_ns / 1000:.1f} µs",
            f"compile or fuse {self.module} (torch.compile), or give it more at once: launches cost the host time",
        )


def _find(view: RanksOfKind) -> MeasuredFinding | None:
    """The module with the most such time."""
    tree = view.report.module_tree
    if tree is None or not tree.whole.device_ns or view.total.kind != "gpu":
        return None
    named: ModuleNode | None = None
    for node in tree.nodes:
        if not _is_tiny(node):
            continue
        if named is None or _time(node) > _time(named) or _stands_for(node, named):
            named = node
    whole_ns = max(tree.iteration_ns, tree.whole.device_ns)
    if named is None or not TINY_LAUNCHES.allows(_time(named), whole_ns):
        return None
    launches = _count(named)
    return MeasuredFinding(
        kind=_KIND,
        facts=TinyLaunches(named.name, launches, _time(named) // launches),
        guard=TINY_LAUNCHES,
        gain_permille=1000 * _time(named) // whole_ns,
        measure="module_tree.nodes",
        value_ns=_time(named),
        names=[named.name],
        place=PlaceInCode(file=named.call_file, line=named.call_line) if named.call_line else None,
    )


def _is_tiny(node: ModuleNode) -> bool:
    launches = _count(node)
    return launches >= _FEWEST and _time(node) <= launches * _LONGEST_NS


def _stands_for(node: ModuleNode, around: ModuleNode) -> bool:
    """Tells whether it is inside the other module and has most of its time."""
    return node.name.startswith(f"{around.name}.") and _time(node) >= _MOST_OF_IT * _time(around)


def _count(node: ModuleNode) -> int:
    return node.forward.launches + node.backward.launches + node.recompute.launches


def _time(node: ModuleNode) -> int:
    return time_of(node, by_device=True)


RULE: Final = FindingRule(_KIND, (TINY_LAUNCHES,), _find)
