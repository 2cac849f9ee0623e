"""The throughput of a job, by the batch that its modules were given and by the pods' label."""

import msgspec
import pytest
from fleetprof_analyzer.job.efficiency.throughput import measure_throughput
from fleetprof_analyzer.words.efficiency import list_throughput
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


BOTH = "1,000 samples take 3.12 GPU-seconds and 200 J of the GPUs"
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


@pytest.mark.parametrize(
    ("label", "tree", "energies", "sentence"),
    [
        # 32 rows in 100 ms on each of two ranks.
        (None, TREE, (6_400, 6_400), f"{BOTH} if each rank has rows of its own."),
        (None, TREE, (6_400, None), "1,000 samples take 3.12 GPU-seconds if each rank has rows of its own."),
        # 64 of the whole job.
        (64, None, (6_400, 6_400), f"{BOTH}."),
    ],
)  # fmt: skip
def test_gpus_and_energy_of_a_thousand_samples(
    label: int | None, tree: ModuleTree | None, energies: tuple[int | None, ...], sentence: str
) -> None:
    ranks = [
        msgspec.structs.replace(rank(number, [100], label), kind="gpu", iteration_energy_mj=energy)
        for number, energy in enumerate(energies)
    ]
    report = Report(throughput=measure_throughput(ranks, tree), module_tree=tree)
    assert list_throughput(report)[0].endswith(sentence)


def test_the_label_counts_the_samples_of_ranks_that_were_not_captured_too() -> None:
    ranks = [msgspec.structs.replace(rank(number, [100], 256), kind="gpu", world_size=8) for number in (0, 5)]
    ranks[1] = msgspec.structs.replace(ranks[1], iterations=[])
    found = measure_throughput(ranks, None)
    assert found is not None
    assert found.gpu_hours_per_thousand == pytest.approx(8 * 0.1 / 256 * 1000 / 3600)
