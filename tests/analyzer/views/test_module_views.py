"""The tree of modules in a terminal and on the page."""

import msgspec
import pytest
from fleetprof_analyzer.slices.writer import encode_slice
from fleetprof_analyzer.views.terminal.modules import cut_modules, render_modules
from fleetprof_api.report.module_tree import HeldBytes, ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.report.report import Report
from fleetprof_api.slices.table import SLICES
from fleetprof_api.slices.tables import ModuleSlice

MS = 1_000_000


def node(name: str, depth: int, forward: int, backward: int = 0, **more: object) -> ModuleNode:
    times = {"forward": ModuleTimes(host_ns=forward * MS), "backward": ModuleTimes(host_ns=backward * MS)}
    return ModuleNode(name=name, depth=depth, calls=1, **times, **more)  # type: ignore[arg-type]


TREE = ModuleTree(
    iteration_ns=120 * MS,
    whole=ModuleTimes(host_ns=100 * MS),
    in_modules=ModuleTimes(host_ns=80 * MS),
    unassigned_backward=ModuleTimes(host_ns=4 * MS),
    held=HeldBytes(parameter_bytes=300_000, optimizer_bytes=600_000),
    nodes=[
        node("Net", 0, 30, 50, class_name="Net", elapsed_ns=30 * MS),
        node("Net.blocks.0", 1, 10, 20, class_name="Block", call_file="/job/train.py", call_line=14),
        node(
            "Net.blocks.0.up",
            2,
            5,
            8,
            class_name="Linear",
            parameter_bytes=264_000,
            saved_bytes=2_100_000,
            output_bytes=1_050_000,
        ),
        node("Net.wait\x1b[31m", 1, 1, elapsed_ns=40 * MS, ranks=2, slowest_rank=3, slowest_ns=9 * MS),
    ],
)


def test_each_module_has_its_share_its_line_and_what_stands_out() -> None:
    assert render_modules(cut_modules(TREE, 3), 120).splitlines() == [
        "Modules of one iteration of 120 ms (operators 100 ms)",
        " 80.0 % ████████   Net  80.0 ms, backward 50.0 ms",
        " 30.0 % ███          blocks.0 Block  train.py:14, 30.0 ms, backward 20.0 ms",
        " 13.0 % █              up Linear  13.0 ms, backward 8.00 ms, outputs 1.00 MiB, parameters 258 KiB,",
        "                          saved for backward 2.00 MiB",
        "  1.0 %              wait�[31m  1.00 ms, forward runs 40.0 ms, rank 3 9.00 ms",
        "Of it in modules 80.0 %, backward of no known module 4.0 %, elsewhere (optimizer, loss, data) 16.0 %.",
        "The modules hold, on one rank: parameters 293 KiB, optimizer's state 586 KiB.",
    ]


def test_figures_of_measured_iterations_and_of_the_marked_one_are_told_apart() -> None:
    nodes = [msgspec.structs.replace(one, measured_iterations=5 * (not one.depth)) for one in TREE.nodes[:2]]
    unmatched = ModuleTimes(host_ns=3 * MS, operators=1200)
    tree = msgspec.structs.replace(TREE, measured_iterations=5, unmatched=unmatched, nodes=nodes)
    first, net, block, parts, *remarks = render_modules(tree, 200).splitlines()
    assert first == "Modules of one iteration of 120 ms (operators 100 ms, median of 5 iterations)"
    assert "  Net  " in net
    assert " blocks.0* Block" in block
    assert "of no known module 3.0 %" in parts
    assert remarks[1].startswith("1,200 operators of an iteration are unlike those of the marked iteration")
    assert remarks[2].startswith("1 module marked * varies: ")


def test_fewer_levels_are_said_and_lines_are_no_longer_than_the_terminal() -> None:
    lines = render_modules(cut_modules(TREE, 1), 60).splitlines()
    assert [line for line in lines if "blocks" in line] == []
    assert "3 modules more are not listed: their time is in those around" in lines
    assert max(map(len, lines)) <= 60
    assert max(map(len, render_modules(TREE, 60).splitlines())) <= 60


def test_the_page_has_the_tree_with_its_sentences() -> None:
    slice_ = msgspec.json.decode(encode_slice(Report(module_tree=TREE), "modules"), type=ModuleSlice)
    assert slice_.tree is not None
    assert [one.depth for one in slice_.tree.nodes] == [0, 1, 2, 1]
    assert slice_.title == "Modules of one iteration of 120 ms (operators 100 ms)"
    assert "Of it in modules 80.0 %" in slice_.remarks[0]
    assert b'"tree":null' in encode_slice(Report(), "modules")


def test_where_modules_are_too_many_the_deepest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SLICES, "modules", SLICES["modules"]._replace(most_rows=3))
    slice_ = msgspec.json.decode(encode_slice(Report(module_tree=TREE), "modules"), type=ModuleSlice)
    assert slice_.tree is not None
    assert ([one.depth for one in slice_.tree.nodes], slice_.cut) == ([0, 1, 1], 1)
