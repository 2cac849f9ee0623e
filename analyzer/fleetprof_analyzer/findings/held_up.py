"""The ranks hold each other up: the straggler verdict as a finding of its verdict's name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.findings.finding import MOST_RANKS, OF_VERDICT, MeasuredFinding
from fleetprof_analyzer.findings.host_time import find_longest_silence
from fleetprof_analyzer.findings.straggler_advice import straggler_advice
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.job.stragglers.sampled_device import SampledDevice

HELD_UP: Final = SentenceGuard(
    place="finding of the verdict", figure="stragglers.gain", whole="the iteration", least_permille=10,
    words="the others wait for rank N", part="ranks",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeldUp:
    """The verdict with its reason in words, the line of code, and what was sampled of the late rank's GPU."""

    found: Stragglers
    place: PlaceInCode | None = None
    device: SampledDevice | None = None

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        reason = self.found.reason
        return reason[:1].upper() + reason[1:], straggler_advice(self.found, self.place, self.device)


def find_held_up(report: Report, device: SampledDevice | None = None) -> MeasuredFinding | None:
    """None where the verdict names nothing, or what it names is worth too little."""
    found = report.stragglers
    if found is None or found.verdict in ("nobody", "not_judged"):
        return None
    permille = round(1000 * found.gain)
    if not HELD_UP.allows(permille, 1000):
        return None
    place = _find_place(found, report.ranks)
    return MeasuredFinding(
        kind=found.verdict,
        facts=HeldUp(found, place, device),
        guard=HELD_UP,
        gain_permille=permille,
        measure=OF_VERDICT,
        place=place,
        ranks=[rank.rank for rank in found.ranks[:MOST_RANKS]],
    )


def _find_place(found: Stragglers, ranks: Sequence[Rank]) -> PlaceInCode | None:
    """The line of the first late rank; of pauses that move, the line with most of them."""
    if found.ranks:
        return found.ranks[0].place
    longest = find_longest_silence(ranks) if found.cause == "host" else None
    return None if longest is None else longest.place
