"""`fleetprof report --modules`: the tree of a capture in words and as JSON; a report without one says what it needs."""

import json
import subprocess
from collections.abc import Callable

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.report.report import Report, write_report
from fleetprof_cli.local.state import StateDirectory

Fleetprof = Callable[..., subprocess.CompletedProcess[str]]
TIMES = ModuleTimes(host_ns=5_000_000, operators=3)
TREE = ModuleTree(
    iteration_ns=10_000_000,
    whole=TIMES,
    in_modules=TIMES,
    nodes=[ModuleNode(name=name, depth=depth, calls=1, forward=TIMES) for depth, name in enumerate(("Net", "Net.a"))],
)


def store(state: StateDirectory, tree: ModuleTree | None) -> None:
    ledger = msgspec.json.encode(Ledger(uid="u-1", name="llama", namespace="default"))
    report = write_report(Report(module_tree=tree))
    for key, data in ((keys.ledger_key("default", "u-1"), ledger), (keys.report_key("default", "u-1"), report)):
        path = state.default_store / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.mark.parametrize(("words", "names"), [(("--modules",), ["Net", "a"]), (("--modules", "1"), ["Net"])])
def test_the_tree_is_shown_as_deep_as_asked(
    fleetprof: Fleetprof, state: StateDirectory, words: tuple[str, ...], names: list[str]
) -> None:
    store(state, TREE)
    shown = fleetprof("report", "llama", *words)
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[3] for line in shown.stdout.splitlines()[1 : 1 + len(names)]] == names
    found = json.loads(fleetprof("report", "llama", "-o", "json", *words).stdout)
    assert [node["name"].rpartition(".")[2] for node in found["nodes"]] == names


def test_lines_are_shown_in_words_and_as_sarif(fleetprof: Fleetprof, state: StateDirectory) -> None:
    called = msgspec.structs.replace(TREE.nodes[0], call_file="/job/model.py", call_line=14)
    store(state, msgspec.structs.replace(TREE, nodes=[called]))
    shown = fleetprof("report", "llama", "--lines")
    assert "/job/model.py:14  Net  5.00 ms, 1 calls" in shown.stdout, shown.stderr
    log = json.loads(fleetprof("report", "llama", "-o", "sarif").stdout)
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["modules"]


def test_a_report_without_modules_says_what_to_ask_for(fleetprof: Fleetprof, state: StateDirectory) -> None:
    store(state, None)
    for flag in ("--modules", "--lines"):
        refused = fleetprof("report", "llama", flag)
        assert refused.returncode == 1
        assert "the report has no modules" in refused.stderr
        assert "`--modules`" in refused.stderr
