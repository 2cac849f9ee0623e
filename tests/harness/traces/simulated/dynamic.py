"""Batches whose shapes differ from rank to rank and from iteration to iteration, and what kernels and rows say of them.

Guarantees: draws of its own, the same with and without a fault. Tokens are relative to a usual batch's.
"""

from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from harness.traces.simulated.shapes import DynamicShapes, LoopShape, of_run

_USUAL_TOKENS, _HIDDEN = 4096, 1024
_LARGE_TILE, _SMALL_TILE = 128, 64
_SMALL_TILE_SLOWER = 1.08
_OF_GEMM = ("gemm", "expert")


@dataclass(slots=True)
class Batch:
    """One batch on one rank: tokens in all, and what its experts get in each layer, backward in reverse."""

    tokens: float = 1.0
    loads: list[list[float]] = field(default_factory=list)
    layer: int = 0


@dataclass(frozen=True, slots=True)
class ShapedKernel:
    """A kernel as it is launched for so many tokens."""

    name: str
    factor: float  # on the time that the kernel takes for a usual batch
    threads: int
    dimensions: list[list[int]]


class BatchSource:
    """The batches of one rank."""

    def __init__(
        self, dynamic: DynamicShapes, shape: LoopShape, seed: int, rank: int, more: float, run: int = 0
    ) -> None:
        self._dynamic, self._layers, self._more = dynamic, shape.layers, more
        self._draws = np.random.default_rng((seed, 29, rank, *of_run(run)))
        self._tunes = np.random.default_rng((seed, 30, rank))
        self._tuned: dict[tuple[str, int], tuple[int, float]] = {}

    def draw(self) -> Batch:
        """The next batch; a rank with more work gets more of everything."""
        dynamic = self._dynamic
        tokens = dynamic.tokens * self._more * float(np.exp(dynamic.spread * self._draws.standard_normal()))
        loads = []
        for _ in range(self._layers if dynamic.experts else 0):
            # What all ranks send to this one's experts, and how it is divided among them.
            sent = float(np.exp(dynamic.expert_spread * self._draws.standard_normal()))
            shares = self._draws.dirichlet([dynamic.evenness] * dynamic.experts)
            loads.append([self._more * sent * float(share) for share in shares])
        return Batch(tokens, loads)

    def shape(self, name: str, tokens: float, threads: int) -> ShapedKernel:
        """The launch of the kernel; `threads` is the grid for a usual batch."""
        dynamic = self._dynamic
        rows = max(round(_USUAL_TOKENS * tokens), 1)
        dimensions = [[rows, _HIDDEN], [_HIDDEN, threads]]
        factor = tokens**2 if dynamic.quadratic and name.startswith("flash") else tokens
        grid = max(ceil(threads * tokens), 1)
        if any(part in name for part in _OF_GEMM):
            if dynamic.fixed_grids:
                return ShapedKernel(f"{name}_persistent", factor, 132, dimensions)
            if dynamic.tiles:
                tile = _LARGE_TILE if rows >= 0.9 * _USUAL_TOKENS * dynamic.tile_border else _SMALL_TILE
                blocks = ceil(rows / tile) * max(round(threads * _LARGE_TILE / _USUAL_TOKENS), 1)
                slower = _SMALL_TILE_SLOWER if tile == _SMALL_TILE else 1.0
                return ShapedKernel(f"{name}_{tile}x128_tn", factor * slower, blocks, dimensions)
        elif dynamic.tuned:
            choice, slower = self._tune(name, rows)
            return ShapedKernel(f"triton_{name}_{choice}", factor * slower, ceil(grid * 4 / choice), dimensions)
        return ShapedKernel(name, factor, grid, dimensions)

    def _tune(self, name: str, rows: int) -> tuple[int, float]:
        """The choice of this rank's autotuner for the kernel at about so many rows."""
        key = name, rows.bit_length()
        if key not in self._tuned:
            self._tuned[key] = 2 ** int(self._tunes.integers(0, 3)), float(np.exp(self._tunes.normal(0, 0.03)))
        return self._tuned[key]


def say_dimensions(dynamic: DynamicShapes | None, dimensions: list[list[int]]) -> dict[str, Any]:
    return {"Input Dims": dimensions} if dynamic is not None and dynamic.says_inputs else {}
