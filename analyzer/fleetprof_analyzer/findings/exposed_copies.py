"""Nothing hides copies and sets of memory."""

from dataclasses import dataclass
from typing import Final

from fleetprof_analyzer.findings.finding import UNEVEN, FindingRule, MeasuredFinding, RanksOfKind, find_uneven
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

EXPOSED_COPIES: Final = SentenceGuard(
    place="finding exposed_copies", figure="totals.time_ns.exposed_memory", whole="the devices' time",
    least_permille=30, words="nothing hides copies and sets of memory", part="copies",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExposedCopies:
    """Copies that nothing hides; `pageable`: some are from memory that is not pinned."""

    pageable: bool

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        pinned = "copy from pinned host memory with non_blocking=True (pin_memory=True in the DataLoader)"
        look = "look at the longest copies: leave out what is copied or transposed twice"
        return EXPOSED_COPIES.words, pinned if self.pageable else look


def _find(view: RanksOfKind) -> MeasuredFinding | None:
    exposed, span = view.total.time_ns.exposed_memory, view.total.time_ns.span
    if not EXPOSED_COPIES.allows(exposed, span):
        return None
    return MeasuredFinding(
        kind="exposed_copies",
        facts=ExposedCopies(any(copy.pageable for rank in view.ranks for copy in rank.copies)),
        guard=EXPOSED_COPIES,
        gain_permille=1000 * exposed // span,
        measure=EXPOSED_COPIES.figure,
        value_ns=exposed,
        ranks=find_uneven(view.ranks, lambda rank: rank.time_ns.exposed_memory),
    )


RULE: Final = FindingRule("exposed_copies", (EXPOSED_COPIES, UNEVEN), _find)
