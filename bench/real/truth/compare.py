"""The share of the main thread's time that has the right stage.

Where an annotation holds, its stage is the right one. Where none holds, the program was between the stages: `host` and
`other` are right, and so is the stage of a neighbour where the piece is shorter than what counts as silence
(docs/measures.md#stages). Where the thread waited for a core, `host` is what the page defines, whatever was annotated;
`strict` counts that as wrong. All shares are of the iterations' whole length.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from fleetprof_analyzer.rank.measures.stages.labels import least_silence
from truth.found import Found
from truth.stamps import LABELS, Truth


@dataclass
class Agreement:
    """Sums over iterations, ns: `wrong` by what was annotated ("" for nothing) and what the analyzer says."""

    iterations: int = 0
    total_ns: int = 0
    right_ns: int = 0
    no_core_ns: int = 0  # said to be the host's, and the thread waited for a core within another stage
    covered_ns: int = 0
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def right(self) -> float:
        return (self.right_ns + self.no_core_ns) / max(self.total_ns, 1)

    @property
    def strict(self) -> float:
        return self.right_ns / max(self.total_ns, 1)

    @property
    def uncovered(self) -> float:
        return 1 - self.covered_ns / max(self.total_ns, 1)


def compare(truth: Truth, found: Found) -> Agreement:
    """One rank's pieces beside its annotations."""
    result = Agreement()
    for labels in found.iterations:
        if labels:
            result.iterations += 1
            _compare_iteration(truth, labels, result)
    return result


def _compare_iteration(truth: Truth, labels: list[tuple[int, int, str]], result: Agreement) -> None:
    start, end = labels[0][0], labels[-1][1]
    least = least_silence(end - start)
    inside = truth.at_ns[(truth.at_ns > start) & (truth.at_ns < end)]
    cuts = np.unique(np.concatenate((inside, [left for left, _, _ in labels], [end])))
    begins = [left for left, _, _ in labels]
    hosts: Counter[int] = Counter()
    for left, right in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        at = int(np.searchsorted(truth.at_ns, left, side="right")) - 1
        annotated = LABELS[truth.labels[at]] if at >= 0 else ""
        label = labels[int(np.searchsorted(begins, left, side="right")) - 1][2]
        length = right - left
        result.total_ns += length
        if annotated:
            is_right = label == annotated
            result.covered_ns += length
            hosts[at] += length if label == "host" else 0
        else:
            is_right = label in ("host", "other") or label in _neighbours(truth, at, least)
        if is_right:
            result.right_ns += length
        else:
            result.wrong[annotated, label] += length
    for at, host_ns in hosts.items():
        result.no_core_ns += min(host_ns, int(truth.waited_ns[at]))


def _neighbours(truth: Truth, at: int, least: int) -> set[str]:
    """The stages before and after a piece that no annotation covers, short but for its waits for a core."""
    if at < 0 or at + 1 >= len(truth.at_ns):
        return set()
    if truth.at_ns[at + 1] - truth.at_ns[at] - truth.waited_ns[at] >= least:
        return set()
    return {LABELS[truth.labels[at - 1]] if at else "", LABELS[truth.labels[at + 1]]}
