"""Modules of two captures are compared by their own work; what is not listed is neither new nor gone."""

from fleetprof_analyzer.comparison.modules import compare_modules
from fleetprof_analyzer.views.terminal.diff import render_diff
from fleetprof_api.report.diff import Diff, Side
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree

MS = 1_000_000


def node(name: str, depth: int, milliseconds: int, launches: int = 4, saved_bytes: int | None = None) -> ModuleNode:
    own = ModuleTimes(device_ns=milliseconds * MS, launches=launches)
    return ModuleNode(name=name, depth=depth, own=own, forward=ModuleTimes(device_ns=99 * MS), saved_bytes=saved_bytes)


def tree(*nodes: ModuleNode, device_ns: int = 9, left_out: int = 0) -> ModuleTree:
    return ModuleTree(whole=ModuleTimes(device_ns=device_ns), nodes=list(nodes), left_out=left_out)


BEFORE = (
    node("Net", 0, 1), node("Net.a", 1, 10, saved_bytes=4_000_000), node("Net.s", 2, 3), node("Net.b", 1, 5),
    node("Net.s", 2, 3),
)  # fmt: skip
AFTER = (
    node("Net", 0, 1), node("Net.a", 1, 14, 6, saved_bytes=2_000_000), node("Net.s", 2, 3), node("Net.c", 1, 2),
    node("Net.s", 2, 3),
)  # fmt: skip


def test_a_module_is_the_same_by_its_name_and_the_modules_around_it() -> None:
    found = compare_modules(tree(*BEFORE), tree(*AFTER))
    assert [(row.name, row.before_ns, row.after_ns, row.difference_ns) for row in found] == [
        ("Net.b", 5 * MS, None, -5 * MS), ("Net.a", 10 * MS, 14 * MS, 4 * MS), ("Net.s", 3 * MS, None, -3 * MS),
        ("Net.s", None, 3 * MS, 3 * MS), ("Net.c", None, 2 * MS, 2 * MS),
    ]  # fmt: skip
    assert (found[1].before_launches, found[1].after_launches) == (4, 6)


def test_what_a_list_may_have_left_out_is_not_gone() -> None:
    found = compare_modules(tree(*BEFORE), tree(*AFTER, left_out=1))
    assert [row.name for row in found] == ["Net.a", "Net.s", "Net.c"]


def test_without_two_trees_of_one_kind_nothing_is_compared() -> None:
    assert compare_modules(tree(*BEFORE), None) == []
    assert compare_modules(tree(*BEFORE), tree(*AFTER, device_ns=0)) == []


def test_they_stand_in_the_terminal() -> None:
    side = Side(title="t", ranks=1, iterations=1, iteration_ns=100 * MS)
    modules = compare_modules(tree(*BEFORE), tree(*AFTER))
    lines = render_diff(Diff(comparable=True, before=side, after=side, modules=modules), 120).splitlines()
    assert [" ".join(line.split()) for line in lines[lines.index("") + 1 :] if "Net" in line or "Modules" in line] == [
        "Modules that differ most, own work of one iteration each (not tested)",
        "-5.00 ms only before: 5.00 ms Net.b",
        "+4.00 ms 10.0 ms → 14.0 ms, 4 → 6 launches, saved 3.81 MiB → 1.91 MiB Net.a",
        "-3.00 ms only before: 3.00 ms Net.s",
        "+3.00 ms only after: 3.00 ms Net.s",
        "+2.00 ms only after: 2.00 ms Net.c",
    ]
