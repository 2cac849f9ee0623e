"""Ranks that are late beside their peers: always, in the mean, again and again, or in a rhythm."""

from fleetprof_analyzer.job.stragglers.causes.rhythm import add_rhythmic
from fleetprof_analyzer.job.stragglers.lateness import excess
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.replay.replay import Replay


def find_candidates(replay: Replay, table: OwnTime) -> list[Candidate]:
    """Each rank once; the largest excess first, then those that only their rhythm shows."""
    return add_rhythmic(table, excess.find_candidates(table), replay.matched.iterations)
