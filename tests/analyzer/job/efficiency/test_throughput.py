"""The throughput of a job, by the batch that its modules were given and by the pods' label."""

import pytest
from fleetprof_analyzer.job.efficiency.throughput import measure_throughput
from fleetprof_analyzer.views.words.efficiency_words import list_throughput
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.report import Iteration, Rank, Report, TimeBreakdown

MS = 1_000_000
TREE = ModuleTree(rows=32, rows_of="GPT", indices=32 * 512, indices_of="GPT.wte")


def rank(number: int, times: list[int], label: int | None = None) -> Rank:
    iterations = [
        Iteration(index=at, start_ns=0, duration_ns=one * MS, complete=one < 1000) for at, one in enumerate(times)
    ]
    return Rank(
        rank=number, source="t", kind="cpu", time_basis="host", time_ns=TimeBreakdown(), iterations=iterations,
        samples_per_iteration=label,
    )  # fmt: skip


RANKS = [rank(0, [100, 100, 2000]), rank(1, [140, 60, 100])]


@pytest.mark.parametrize(
    ("ranks", "tree", "sentences"),
    [
        (
            RANKS, TREE,
            [
                "320 samples/s per rank (32 rows of `GPT` in an iteration of 100 ms), 640 on 2 ranks if each has rows "
                "of its own. 163,840 tokens/s per rank (16,384 indices of `GPT.wte`)."
            ],
        ),
        ([rank(0, [100], 64), rank(1, [100], 64)], None, ["640 samples/s of the whole job, by the pods' label."]),
        ([rank(0, [100], 64), rank(1, [100], 32)], None, []),
        ([rank(0, [2000])], TREE, []),
        (RANKS, ModuleTree(), []),
    ],
    ids=["modules", "label", "labels differ", "no whole iteration", "nothing known"],
)  # fmt: skip
def test_what_is_said(ranks: list[Rank], tree: ModuleTree | None, sentences: list[str]) -> None:
    report = Report(throughput=measure_throughput(ranks, tree), module_tree=tree)
    assert list_throughput(report) == sentences
