"""The pipelines of a job: how many stages, microbatches, and parts of the model on each stage.

All of it from the matched sends and receives, never from numbers of ranks. Guarantees: pure.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.replay.roles import find_depths
from fleetprof_analyzer.rank.communication.operations import KINDS

_SEND: Final = KINDS.index("send")
_BETWEEN_NS: Final = 1_000  # work between two messages; tensors of one message are sent one behind the other
Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PipelineShape:
    """Stages, batches that pass through them in an iteration, and parts of the model on each stage.

    `microbatches` is None where the messages do not tell it.
    """

    stages: int
    microbatches: int | None
    chunks: int

    @property
    def ideal_share(self) -> float | None:
        """The share that each device waits of an iteration of 1F1B with equal stages, (p - 1) / (v m + p - 1)."""
        if self.microbatches is None:
            return None
        return (self.stages - 1) / (self.chunks * self.microbatches + self.stages - 1)


def find_shape(replay: Replay) -> PipelineShape | None:
    """The pipelines of the job, if all are alike."""
    messages = _messages(replay)
    pipelines = _pipelines(set(messages))
    depths = find_depths(replay.played, replay.strays)
    shapes = set()
    for ranks in pipelines:
        stages = sorted(ranks, key=lambda rank: depths[rank])
        if [depths[rank] for rank in stages] != list(range(len(stages))):
            return None
        shapes.add(_shape(stages, messages))
    return shapes.pop() if len(shapes) == 1 else None


def _shape(stages: list[int], messages: dict[Edge, int]) -> PipelineShape:
    """By how many messages go forward: m v between neighbors, m (v - 1) from the last stage to the first one."""
    count = len(stages)
    forward = {messages.get(edge, 0) for edge in pairwise(stages)}
    around = messages.get((stages[-1], stages[0]), 0) if count > 2 else 0
    if len(forward) != 1:
        return PipelineShape(count, None, 1)
    total = forward.pop()
    microbatches = total - around
    if microbatches <= 0 or total % microbatches:
        return PipelineShape(count, None, 1)
    return PipelineShape(count, microbatches, total // microbatches)


def _messages(replay: Replay) -> dict[Edge, int]:
    """The number of messages that go from one rank (its position) to another in most iterations."""
    place = {one.rank: number for number, one in enumerate(replay.played.ranks)}
    layout, kind, peer = replay.layout, replay.gather("kind"), replay.gather("peer")
    worked = np.cumsum(replay.work_ns)
    counts: dict[Edge, Counter[int]] = defaultdict(Counter)
    last: dict[Edge, tuple[int, int]] = {}
    chosen = (kind == _SEND) & (replay.iteration >= 0) & ~replay.is_stray
    for operation in np.flatnonzero(chosen).tolist():
        receiver = place.get(int(peer[operation]))
        if receiver is None:
            continue
        edge, number = (int(layout.rank[operation]), receiver), int(replay.iteration[operation])
        before = last.get(edge)
        last[edge] = (number, int(worked[operation]))
        if before is None or before[0] != number or worked[operation] - before[1] > _BETWEEN_NS:
            counts[edge][number] += 1
    return {edge: Counter(of_edge.values()).most_common(1)[0][0] for edge, of_edge in counts.items()}


def _pipelines(edges: set[Edge]) -> list[set[int]]:
    """The ranks that messages join, both ways."""
    found: list[set[int]] = []
    for edge in edges:
        if (edge[1], edge[0]) not in edges:
            continue
        joined = set(edge).union(*(one for one in found if one & set(edge)))
        found = [one for one in found if not one & joined] + [joined]
    return found
