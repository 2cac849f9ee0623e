"""The one judge of a verdict on late ranks beside the planted truth, for every bench of them.

Guarantees: pure; whoever names something that is not at fault is wrong, whatever else the verdict says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from fleetprof_api.report.stragglers import Cause, Stragglers

LEAST_GAIN = 0.02
GAIN_OFF = 0.03
_NAMED = ("straggler", "slow_link", "heavy_stage")
_LEFT_OPEN = ("undecided", "not_judged")
_OF_CAUSES = {"network": "slow_link", "stage_imbalance": "heavy_stage"}
MOVES: dict[str, Cause] = {
    "moving": "unequal_work", "moving_lengths": "unequal_work", "pauses_everywhere": "garbage_collection",
}  # fmt: skip
"""Causes that may be said to move in generated jobs of these kinds, which have no fault."""

Outcome = Literal["right", "open", "small", "nobody", "moves", "wrong", "crash"]
"""`small`: less than the floor that the report states; `moves`: a job without a fault is said to have moving work."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Truth:
    """The right answer: the verdict, the ranks of which one may come first, the cause, and what it costs.

    Of a stage, and of a link of several ranks, all are to be named, and no other.
    """

    verdict: str  # "nobody" of a job without a fault
    ranks: tuple[int, ...] = ()
    causes: tuple[str, ...] = ()
    gain: float | None = None  # None: not known
    counts: bool = True  # traces can tell it, and it costs enough
    moving: Cause | None = None  # of a job without a fault: what may be said to move

    @staticmethod
    def of_fault(cause: str, ranks: tuple[int, ...], gain: float, *, is_told: bool) -> Truth:
        """The truth of a planted fault; `is_told`: traces can tell it."""
        return Truth(_OF_CAUSES.get(cause, "straggler"), ranks, (cause,), gain, is_told and gain >= LEAST_GAIN)

    @property
    def is_fault(self) -> bool:
        """Tells whether somebody is to be named."""
        return self.verdict in _NAMED

    @property
    def is_whole(self) -> bool:
        """Tells whether all of the ranks are to be named."""
        return self.verdict == "heavy_stage" or (self.verdict == "slow_link" and len(self.ranks) > 1)


@dataclass(frozen=True)
class JudgedVerdict:
    """The outcome of a verdict; of a right one whether its cause and its gain are, or the gain is said to be rough."""

    outcome: Outcome
    cause: bool = False
    near: bool = False
    rough: bool = False

    @property
    def word(self) -> str:
        """The outcome, or what a right one falls short of."""
        if self.outcome != "right":
            return self.outcome
        return "cause" if not self.cause else "right" if self.near or self.rough else "gain"


def judge(found: Stragglers, truth: Truth) -> JudgedVerdict:
    """Judges a verdict."""
    first = found.ranks[0] if found.ranks else None
    cause = "network" if found.verdict == "slow_link" else first.cause if first is not None else found.cause
    gain = first.gain if found.verdict == "straggler" and first is not None else found.gain
    return JudgedVerdict(
        _outcome(found, truth),
        cause=cause in (truth.causes or (truth.moving,)) or found.verdict == truth.verdict == "nobody",
        near=truth.gain is None or abs(gain - truth.gain) <= GAIN_OFF,
        rough=found.approximate,
    )


def _outcome(found: Stragglers, truth: Truth) -> Outcome:
    if found.verdict in _NAMED:
        return "right" if truth.is_fault and _names(found, truth) else "wrong"
    stated = found.smallest_gain if found.verdict != "not_judged" else None
    is_small = truth.gain is not None and truth.gain < max(stated or 0.0, LEAST_GAIN)
    if found.verdict in _LEFT_OPEN:
        return "small" if is_small else "open"
    if found.verdict == truth.verdict:
        return "right"
    if truth.verdict == "nobody":
        return "right" if found.cause == truth.moving else "moves"
    return "small" if is_small else "nobody"


def _names(found: Stragglers, truth: Truth) -> bool:
    links = {rank for link in found.slow_links[:1] for rank in link.ranks}
    if truth.is_whole:
        named = links if found.verdict == "slow_link" else {one.rank for one in found.ranks}
        return found.verdict == truth.verdict and named == set(truth.ranks)
    return bool(({one.rank for one in found.ranks[:1]} | links) & set(truth.ranks))
