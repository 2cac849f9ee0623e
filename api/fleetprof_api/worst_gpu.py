"""The worst of several GPUs with the same work: one rule for telemetry and for reports.

Guarantees: pure; it names at most one, and none of fewer than FEWEST_PEERS. What separates good from bad GPUs of one
model is a few percent (docs/telemetry.md#the-worst-gpu).
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

FEWEST_PEERS: Final = 4
JOULES_OVER_PEERS: Final = 1.10
CLOCK_UNDER_PEERS: Final = 0.95
SPREADS: Final = 5
"""How many median absolute deviations it must be away: where all GPUs differ, none is the worst."""


class GpuFigures(NamedTuple):
    """One rank's GPU: energy of an iteration, and clock of its SMs, each in any unit. None: not known."""

    rank: int
    energy: float | None
    clock: float | None


class WorstOfPeers(NamedTuple):
    """`energy_over_peers` and `clock_under_peers` are shares of the peers' median; `badness` compares groups.

    `peers`: the others whose figure it was compared with.
    """

    rank: int
    energy_over_peers: float | None
    clock_under_peers: float | None
    peers: int
    badness: float


def find_worst(groups: Iterable[Sequence[GpuFigures]]) -> WorstOfPeers | None:
    """The worst of all GPUs, each judged by its own group, whose members do the same work; None: none stands out."""
    found = [worst for group in groups for worst in _judge(group)]
    return max(found, key=lambda one: (one.badness, -one.rank), default=None)


def _judge(group: Sequence[GpuFigures]) -> Iterable[WorstOfPeers]:
    energies, clocks = _Peers([gpu.energy for gpu in group]), _Peers([gpu.clock for gpu in group])
    for gpu in group:
        more, slower = energies.share(gpu.energy), clocks.share(gpu.clock)
        wastes = more is not None and more >= JOULES_OVER_PEERS and energies.stands_out(gpu.energy)
        lags = slower is not None and slower <= CLOCK_UNDER_PEERS and clocks.stands_out(gpu.clock)
        if wastes or lags:
            badness = max(more if wastes and more else 1.0, 1 / slower if lags and slower else 1.0)
            known = min(figures.known for figures, worse in ((energies, wastes), (clocks, lags)) if worse)
            yield WorstOfPeers(gpu.rank, more, slower, known - 1, badness)


class _Peers:
    """One figure of GPUs with the same work."""

    def __init__(self, values: Iterable[float | None]) -> None:
        known = [value for value in values if value is not None]
        self.known = len(known)
        self._usual = median(known) if len(known) >= FEWEST_PEERS else 0.0
        self._spread = median(abs(value - self._usual) for value in known) if self._usual else 0.0

    def share(self, value: float | None) -> float | None:
        return value / self._usual if value is not None and self._usual else None

    def stands_out(self, value: float | None) -> bool:
        return value is not None and abs(value - self._usual) > SPREADS * self._spread
