"""A module whose device work is many tiny launches is named, and the innermost of those inside each other."""

import pytest
from fleetprof_analyzer.findings.finding import RanksOfKind
from fleetprof_analyzer.findings.tiny_launches import RULE
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.report.report import KindTotal, Report, TimeBreakdown

US = 1000


def node(name: str, microseconds: int, launches: int) -> ModuleNode:
    times = ModuleTimes(device_ns=microseconds * US, launches=launches)
    return ModuleNode(name=name, depth=name.count("."), forward=times)


def tell(tree: ModuleTree | None) -> Finding | None:
    found = RULE.find(
        RanksOfKind(
            Report(module_tree=tree), KindTotal(kind="gpu", time_basis="device", ranks=1, time_ns=TimeBreakdown()), []
        )
    )
    return None if found is None else found.tell()


def find(*nodes: ModuleNode, device_ns: int = 50_000 * US) -> list[tuple[str, int]]:
    tree = ModuleTree(iteration_ns=50_000 * US, whole=ModuleTimes(device_ns=device_ns), nodes=list(nodes))
    found = tell(tree)
    return [] if found is None else [(found.names[0], found.gain_permille)]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("Net", 40_000, 1500), node("Net.embed", 4500, 1300), node("Net.mlp", 30_000, 200)], [("Net.embed", 90)]),
        ([node("Net", 9000, 2000), node("Net.a", 8000, 1900), node("Net.a.b", 7000, 1800)], [("Net.a.b", 140)]),
        ([node("Net", 9000, 2000), node("Net.a", 4500, 1000), node("Net.b", 4500, 1000)], [("Net", 180)]),
        ([node("Net", 9000, 90)], []),  # 100 µs each
        ([node("Net", 900, 90)], []),  # few
        ([node("Net", 2000, 1000)], []),  # little of the iteration
    ],
    ids=["one of several", "innermost", "many alike", "long", "few", "little"],
)
def test_it_is_named(nodes: list[ModuleNode], expected: list[tuple[str, int]]) -> None:
    assert find(*nodes) == expected


def test_without_device_or_modules_there_is_none() -> None:
    assert find(node("Net", 9000, 2000), device_ns=0) == []
    assert tell(None) is None


def test_the_sentence() -> None:
    tree = ModuleTree(iteration_ns=50_000 * US, whole=ModuleTimes(device_ns=9), nodes=[node("Net.embed", 5200, 1300)])
    finding = tell(tree)
    assert finding is not None
    assert finding.message == "Net.embed runs in 1,300 launches of 4.0 µs"
    assert "compile or fuse Net.embed" in finding.advice
