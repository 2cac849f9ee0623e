"""CPU-only ranks that train together over gloo and record what each operator was given: planted work, planted speed.

All ranks leave an all-reduce together, so whoever takes longest holds the others up. Knows nothing of the analysis.
"""

import random
from dataclasses import dataclass
from typing import Any

from harness.traces.planted.traces import BASE_NS, Digits, microseconds, to_json

US = 1_000
FEATURES = 512
LAYERS = 4
PID, MAIN, NETWORK = 77, 77, 78


@dataclass(frozen=True)
class RankPace:
    """The work of one rank and how fast it is. `slow_batch`, `slow_step`: factors on the time for the same work."""

    tokens: int = 64
    slow_batch: float = 1.0
    slow_step: float = 1.0
    spread: float = 0.0  # of the logarithm of a batch's tokens


def plant_batches(paces: list[RankPace], *, iterations: int = 12, shapes: bool = True, seed: int = 0) -> list[str]:
    """The ranks' traces as JSON."""
    ranks = [_Rank(number, pace, shapes, random.Random(f"{seed}/{number}")) for number, pace in enumerate(paces)]
    for index in range(iterations):
        begun = [rank.now_ns for rank in ranks]
        for rank in ranks:
            rank.draw_batch()
            rank.go_forward_and_back()
        end_ns = max(rank.now_ns for rank in ranks) + 300 * US
        for rank, began_ns in zip(ranks, begun, strict=True):
            rank.reduce(end_ns)
            rank.step()
            rank.add("user_annotation", f"ProfilerStep#{index}", began_ns, rank.now_ns)
    return [rank.text(len(paces)) for rank in ranks]


class _Rank:
    def __init__(self, number: int, pace: RankPace, shapes: bool, noise: random.Random) -> None:
        self.number, self.pace, self.shapes, self.noise = number, pace, shapes, noise
        self.lengths = random.Random(f"{noise.random()}") if pace.spread else None
        self.tokens = pace.tokens
        self.now_ns = 10_000 * US
        self.events: list[dict[str, Any]] = []

    def add(
        self, category: str, name: str, start_ns: int, end_ns: int, dimensions: Any = None, thread: int = MAIN,
        **args: Any,
    ) -> None:  # fmt: skip
        if dimensions is not None and self.shapes:
            args["Input Dims"] = dimensions
        times = {"ts": Digits(microseconds(start_ns)), "dur": Digits(microseconds(end_ns - start_ns))}
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": PID, "tid": thread, **times, "args": args})

    def operator(self, name: str, took_us: float, dimensions: Any, **args: Any) -> None:
        start_ns = self.now_ns
        self.now_ns += round(took_us * US * self.noise.lognormvariate(0, 0.03))
        self.add("cpu_op", name, start_ns, self.now_ns, dimensions, **args)
        self.now_ns += 5 * US

    def draw_batch(self) -> None:
        if self.lengths is not None:
            self.tokens = max(round(self.pace.tokens * self.lengths.lognormvariate(0, self.pace.spread)), 1)

    def go_forward_and_back(self) -> None:
        tokens, weights = self.tokens, [FEATURES, FEATURES]
        factor = self.pace.slow_batch * tokens / 64
        for layer in range(LAYERS):
            number = {"Sequence number": layer}
            self.operator("aten::addmm", 400 * factor, [[FEATURES], [tokens, FEATURES], weights, [], []], **number)
            self.operator("aten::gelu", 100 * factor, [[tokens, FEATURES], []])
            self.operator("aten::native_layer_norm", 80 * factor, [[tokens, FEATURES], [], [FEATURES], [FEATURES], []])
        for layer in reversed(range(LAYERS)):
            start_ns = self.now_ns
            self.operator("aten::mm", 500 * factor, [[FEATURES, tokens], [tokens, FEATURES]])
            self.operator("aten::gelu_backward", 120 * factor, [[tokens, FEATURES], [tokens, FEATURES], []])
            name = "autograd::engine::evaluate_function: AddmmBackward0"
            self.add("cpu_op", name, start_ns, self.now_ns, [], **{"Sequence number": layer})

    def reduce(self, end_ns: int) -> None:
        """From when this rank has come to when all have, on a thread of its own; the training thread waits."""
        self.add("user_annotation", "gloo:all_reduce", self.now_ns, end_ns, [[LAYERS * FEATURES**2]], NETWORK)
        self.now_ns = end_ns + 10 * US

    def step(self) -> None:
        start_ns = self.now_ns
        for _ in range(LAYERS):
            for name in ("aten::mul_", "aten::add_", "aten::addcdiv_"):
                self.operator(name, 40 * self.pace.slow_step, [[FEATURES, FEATURES], [FEATURES, FEATURES], []])
        self.add("user_annotation", "Optimizer.step#AdamW.step", start_ns, self.now_ns)

    def text(self, world_size: int) -> str:
        head = {"backend": "gloo", "rank": self.number, "world_size": world_size}
        return to_json(
            {
                "schemaVersion": 1, "distributedInfo": head, "baseTimeNanoseconds": BASE_NS,
                "traceEvents": sorted(self.events, key=lambda one: float(one["ts"].digits)),
            }
        )  # fmt: skip
