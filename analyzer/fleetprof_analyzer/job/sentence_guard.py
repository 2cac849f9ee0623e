"""A sentence about lost time, the figure that it rests on, and the share from which on it is said.

Findings, verdicts and headlines ask their guards; docs/measures.md lists all of them. Guarantees: pure; the least share
itself is enough, or what is above it (`more`).
"""

from dataclasses import dataclass

from fleetprof_api.report.findings import PartOfTime


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceGuard:
    """`words` are said at `place` from `least_permille` of `whole` on that `figure` takes; `more`: above it.

    `words` are as people read them, … for what varies; `below` is what is said below that share. `part`: of a finding,
    the part of the time that a headline speaks of where the finding is worth most.
    """

    place: str
    figure: str
    whole: str
    least_permille: int
    words: str
    below: str = "nothing"
    part: PartOfTime = ""
    more: bool = False

    def allows(self, figure: float, whole: float) -> bool:
        """Tells whether the figure justifies the sentence."""
        have, least = 1000 * figure, self.least_permille * whole
        return whole > 0 and (have > least if self.more else have >= least)
