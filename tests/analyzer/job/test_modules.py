"""The trees of several ranks as one."""

import pytest
from fleetprof_analyzer.job.modules import merge_modules
from fleetprof_api.report.module_tree import MOST_NODES, ModuleNode, ModuleTimes, ModuleTree
from msgspec.structs import replace


def times(host_ns: int = 0, device_ns: int = 0) -> ModuleTimes:
    return ModuleTimes(host_ns=host_ns, device_ns=device_ns, operators=2)


def node(name: str, depth: int, host_ns: int, device_ns: int = 0) -> ModuleNode:
    return ModuleNode(name=name, depth=depth, calls=2, forward=times(host_ns, device_ns), parameter_bytes=64)


def tree(*nodes: ModuleNode, host_ns: int = 100, device_ns: int = 0) -> ModuleTree:
    return ModuleTree(iteration_ns=1000, whole=times(host_ns, device_ns), nodes=list(nodes))


def test_the_same_module_on_all_ranks_is_one_node_with_the_rank_that_takes_longest() -> None:
    merged = merge_modules(
        [
            (0, tree(node("Net", 0, 90), node("Net.a", 1, 10), node("Net.b", 1, 50))),
            (1, None),
            (2, tree(node("Net", 0, 110), node("Net.b", 1, 70), node("Net.c", 1, 7), host_ns=140)),
        ]
    )
    assert merged is not None
    assert (merged.ranks, merged.iteration_ns, merged.whole.host_ns) == (2, 1000, 120)
    found = [(one.name, one.depth, one.forward.host_ns, one.ranks, one.slowest_rank) for one in merged.nodes]
    assert found == [("Net", 0, 100, 2, 2), ("Net.a", 1, 10, 1, None), ("Net.b", 1, 60, 2, 2), ("Net.c", 1, 7, 1, None)]
    assert (merged.nodes[2].slowest_ns, merged.nodes[2].parameter_bytes, merged.nodes[2].calls) == (70, 64, 2)


def test_the_batch_is_a_mean_where_all_ranks_name_the_same_modules() -> None:
    trees = [replace(tree(node("Net", 0, 9)), rows=rows, rows_of="Net", indices=9, indices_of=name)
             for rows, name in ((8, "Net.a"), (6, "Net.b"))]  # fmt: skip
    merged = merge_modules(list(enumerate(trees)))
    assert merged is not None
    assert (merged.rows, merged.rows_of, merged.indices) == (7, "Net", None)


def test_where_there_is_a_device_its_time_counts() -> None:
    trees = [(rank, tree(node("Net", 0, 9 - rank, 5 + rank), device_ns=9)) for rank in range(3)]
    merged = merge_modules(trees)
    assert merged is not None
    assert (merged.nodes[0].slowest_rank, merged.nodes[0].slowest_ns) == (2, 7)


@pytest.mark.parametrize("trees", [[], [(0, None)]])
def test_without_marks_there_is_no_tree(trees: list[tuple[int, None]]) -> None:
    assert merge_modules(trees) is None


def test_the_tree_of_many_ranks_is_as_small_as_one() -> None:
    """Each rank has modules of its own, as stages of a pipeline have."""
    trees = [(rank, tree(node(f"Stage{rank}", 0, 500 - rank), node(f"Stage{rank}.a", 1, 1))) for rank in range(200)]
    merged = merge_modules(trees)
    assert merged is not None
    assert len(merged.nodes) == MOST_NODES
    assert merged.left_out == 400 - MOST_NODES
    assert [one.name for one in merged.nodes if one.depth == 0] == [f"Stage{rank}" for rank in range(200)]
