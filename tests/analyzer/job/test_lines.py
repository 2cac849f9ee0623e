"""Each line of code has the work of all modules that it calls, once."""

from fleetprof_analyzer.job.lines import LineWork, list_lines
from fleetprof_analyzer.views.terminal.lines import render_lines
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree

MS = 1_000_000


def node(
    name: str, depth: int, milliseconds: int, line: int, saved_bytes: int | None = 8, parameter_bytes: int | None = None
) -> ModuleNode:
    return ModuleNode(
        name=name, depth=depth, calls=2, call_file="/job/model.py" if line else "", call_line=line,
        forward=ModuleTimes(host_ns=milliseconds * MS // 2, launches=3, flops=milliseconds * 10**9),
        backward=ModuleTimes(host_ns=milliseconds * MS // 2), saved_bytes=saved_bytes,
        parameter_bytes=parameter_bytes,
    )  # fmt: skip


TREE = ModuleTree(
    iteration_ns=120 * MS,
    whole=ModuleTimes(host_ns=100 * MS),
    nodes=[
        node("Net", 0, 90, 0, None),
        node("Net.blocks.0", 1, 30, 14),
        node("Net.blocks.0.up", 2, 20, 7, parameter_bytes=64),
        node("Net.blocks.1", 1, 40, 14),
        node("Net.blocks.1.up", 2, 25, 7, parameter_bytes=64),
        node("Net.again", 1, 10, 30),
        node("Net.again.again", 2, 8, 30),
    ],
)


def test_a_line_has_the_sums_of_the_modules_that_it_calls() -> None:
    def work(line: int, modules: list[str], milliseconds: int, saved: int, **more: int | None) -> LineWork:
        launches, calls = 3 * len(modules), 2 * len(modules)
        flops = milliseconds * 10**9
        return LineWork(
            "/job/model.py", line, modules, milliseconds * MS, calls, launches, flops, saved, more.get("parameters")
        )

    assert list_lines(TREE) == [
        work(14, ["Net.blocks.0", "Net.blocks.1"], 70, 32, parameters=128),
        work(7, ["Net.blocks.0.up", "Net.blocks.1.up"], 45, 16, parameters=128),
        work(30, ["Net.again"], 10, 16),  # it calls itself
    ]


def test_the_lines_in_a_terminal() -> None:
    assert render_lines(TREE, 100).splitlines() == [
        "Modules of one iteration of 120 ms (operators 100 ms), by the line that calls a module; with all",
        "that is inside it.",
        " 70.0 %  /job/model.py:14  Net.blocks.0, Net.blocks.1  70.0 ms, 4 calls, 6 launches, 1.00 TFLOP/s,",
        "         parameters 128 bytes, saved for backward 32 bytes",
        " 45.0 %  /job/model.py:7  Net.blocks.0.up, Net.blocks.1.up  45.0 ms, 4 calls, 6 launches, 1.00",
        "         TFLOP/s, parameters 128 bytes, saved for backward 16 bytes",
        " 10.0 %  /job/model.py:30  Net.again  10.0 ms, 2 calls, 3 launches, 1.00 TFLOP/s, saved for backward",
        "         16 bytes",
    ]
    assert max(map(len, render_lines(TREE, 60).splitlines())) <= 60
