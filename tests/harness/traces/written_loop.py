"""A training loop on one rank, written row by row, with samples of its thread: what rules of known causes look at.

Times in ms from the first iteration on. Each iteration begins with a forward operator, goes back on autograd's thread
and ends with the optimizer's step; what a test adds lies where the loop has nothing.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_api.report.rank_tables import KnownCause
from fleetprof_api.report.report import Rank
from fleetprof_api.samples import CodePlace, CollectionColumns, RankSamples, StepColumns, ThreadColumns

BASE_NS = 1_700_000_000_000_000_000
MAIN, AUTOGRAD, GLOO = 100, 200, 300
TRAIN = CodePlace(file="/home/me/train.py", function="train", line=41)


@dataclass
class WrittenLoop:
    """`forward_at_ms` and `backward_at_ms`: when they begin in each iteration; both last 1 ms, the step 0.5 ms.

    `steps_ms`: ends of steps that the agent saw, from step 0 on.
    """

    iterations: int = 12
    length_ms: float = 10
    gpu: bool = False
    forward_at_ms: float = 6
    backward_at_ms: float = 7.5
    events: list[dict[str, Any]] = field(default_factory=list)
    looks: list[tuple[float, tuple[CodePlace, ...]]] = field(default_factory=list)
    collections_ms: list[tuple[float, float]] = field(default_factory=list)
    steps_ms: list[float] = field(default_factory=list)
    has_samples: bool = True

    def __post_init__(self) -> None:
        for number in range(self.iterations):
            at = number * self.length_ms
            step_at = at + self.length_ms - 0.6
            self.add(f"ProfilerStep#{number}", at, self.length_ms, category="user_annotation")
            self.add("aten::linear", at + self.forward_at_ms, 1, number=number)
            self.add("autograd::engine::evaluate_function: AddmmBackward0", at + self.backward_at_ms, 1, AUTOGRAD,
                     number=number)  # fmt: skip
            self.add("Optimizer.step#SGD.step", step_at, 0.5, category="user_annotation")
            self.add("aten::add_", step_at + 0.1, 0.2)
            if self.gpu:
                self.add_kernel("gemm", at + self.forward_at_ms, 2.4)

    def add(
        self, name: str, at_ms: float, length_ms: float, thread: int = MAIN, *, category: str = "cpu_op",
        number: int | None = None, **arguments: Any,
    ) -> None:  # fmt: skip
        """A row of the host; `number` is autograd's."""
        details = arguments | ({} if number is None else {"Sequence number": number, "Fwd thread id": 0})
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": round(1000 * at_ms, 3),
             "dur": round(1000 * length_ms, 3), "args": details}
        )  # fmt: skip

    def add_kernel(self, name: str, at_ms: float, length_ms: float, **arguments: Any) -> None:
        """A row of the device, launched as it begins."""
        number = len(self.events)
        self.add("cudaLaunchKernel", at_ms, 0.002, category="cuda_runtime", correlation=number)
        details = {"device": 0, "stream": 7, "correlation": number} | arguments
        self.events.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": round(1000 * at_ms + 3, 3),
             "dur": round(1000 * length_ms - 3, 3), "args": details}
        )  # fmt: skip

    def look(self, at_ms: float, *stack: CodePlace) -> None:
        """A sample of the main thread, the innermost frame first."""
        self.looks.append((at_ms, stack or (TRAIN,)))

    def look_all_along(self, every_ms: float = 1.0) -> None:
        """Samples of the loop's own line wherever there is none yet."""
        taken = {round(at / every_ms) for at, _ in self.looks}
        for count in range(int(self.iterations * self.length_ms / every_ms)):
            if count not in taken:
                self.look(count * every_ms)

    @property
    def samples(self) -> RankSamples | None:
        if not self.has_samples:
            return None
        looks = sorted(self.looks, key=lambda look: look[0])
        places = list(dict.fromkeys(place for _, stack in looks for place in stack))
        stacks = list(dict.fromkeys(stack for _, stack in looks))
        return RankSamples(
            rank=0,
            places=places,
            stacks=[[places.index(place) for place in stack] for stack in stacks],
            thread=ThreadColumns(
                at_unix_ns=[_unix_ns(at) for at, _ in looks], stack=[stacks.index(stack) for _, stack in looks]
            ),
            steps=StepColumns(step=list(range(len(self.steps_ms))), end_unix_ns=[_unix_ns(at) for at in self.steps_ms]),
            collections=CollectionColumns(
                start_unix_ns=[_unix_ns(at) for at, _ in self.collections_ms],
                duration_ns=[round(1e6 * lasted) for _, lasted in self.collections_ms],
            ),
        )

    def trace(self) -> Trace:
        """As it is read."""
        document = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, "traceEvents": self.events}
        return read_trace(io.BytesIO(json.dumps(document).encode()), "trace.json", Problems())

    def rank(self) -> Rank:
        """As it is measured."""
        summary = summarise(
            self.trace(), self.samples, rank_number=0, terms=RecordingTerms(), problems=(problems := Problems())
        )
        assert summary.rank is not None
        assert not summary.rank.lost, problems.entries("trace.json", 0)
        return summary.rank

    def causes(self) -> Sequence[KnownCause]:
        """The causes that are proven of it."""
        return self.rank().causes


def _unix_ns(at_ms: float) -> int:
    return BASE_NS + round(1e6 * at_ms)
