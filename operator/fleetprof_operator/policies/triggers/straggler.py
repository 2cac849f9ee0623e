"""The same rank stays behind its peers in activity."""

from fleetprof_api.policy import StragglerTrigger

from fleetprof_operator.policies.triggers.watch import IntervalFigures, LastingWatch


class StragglerWatch(LastingWatch[StragglerTrigger]):
    """Compares the activity of the lowest rank with `below_permille` of the ranks' mean."""

    def __init__(self, name: str, details: StragglerTrigger) -> None:
        super().__init__(name, details, details.for_seconds)
        self._rank = -1

    def judge(self, interval: IntervalFigures) -> str | None:
        """See LastingWatch."""
        if interval.lowest is None:
            return None
        rank, share_permille = interval.lowest
        below_permille = self.details.below_permille
        is_behind = share_permille < below_permille
        if self.persistence.score == 0 and is_behind:
            self._rank = rank
        if not self.persistence.look(is_behind and rank == self._rank):
            return None
        return (
            f"rank {rank} has {share_permille / 10:.0f} % of the ranks' mean activity, "
            f"below {below_permille / 10:.0f} % {self.lasting}"
        )
