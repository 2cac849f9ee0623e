"""The edits that can be set, by the text with which each is asked for."""

import math

import pytest
from fleetprof_analyzer.whatif.edits import (
    BatchSize,
    Edit,
    Faster,
    Graphed,
    Loader,
    Network,
    NodeCount,
    RankCount,
    UnreadableEdit,
    WithoutStraggler,
    read_edits,
)

READ: list[tuple[str, Edit]] = [
    ("network=2x", Network(2)),
    ("network=0.5x", Network(0.5)),
    ("loader=0", Loader(math.inf)),
    ("loader=3x", Loader(3)),
    ("without-straggler=3", WithoutStraggler(3)),
    ("graph=all", Graphed("")),
    ("graph=model.layers.0", Graphed("model.layers.0")),
    ("ranks=64", RankCount(64)),
    ("nodes=8", NodeCount(8)),
    ("batch_size=64", BatchSize(64)),
    ("faster:aten::linear=2x", Faster("aten::linear", 2)),
    ("faster:model.layers.0=1.5x", Faster("model.layers.0", 1.5)),
    ("faster:void gemm<a = 1>=2x", Faster("void gemm<a = 1>", 2)),
]
REFUSED = ["", "network", "network=", "network=2", "network=0", "network=0x", "faster=2x", "faster:=2x", "loader:a=2x",
           "graph=", "ranks=1", "nodes=0", "batch_size=0", "batch_size=-1", "batch_size=1.5",
           "device=H100"]  # fmt: skip


@pytest.mark.parametrize(("text", "meant"), READ)
def test_what_is_set(text: str, meant: Edit) -> None:
    assert read_edits([text]) == [meant]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(UnreadableEdit, match=r"2x|number|what can"):
        read_edits([text])
