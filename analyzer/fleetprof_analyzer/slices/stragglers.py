"""The verdict on who is late, with its tables and sentences. Pure."""

import msgspec
from fleetprof_api.report.report import Report
from fleetprof_api.report.stragglers import Straggler, Stragglers
from fleetprof_api.slices.ranks import StragglerSlice

from fleetprof_analyzer.words.straggler_list import notes, say_hosts, verdict


def make_stragglers(report: Report, most: int) -> StragglerSlice:
    """The slice, with at most so many ranks."""
    found = report.stragglers
    if found is None:
        return StragglerSlice(sentence="", hosts=[], notes=[], found=None)
    shown = _cut(found, most)
    return StragglerSlice(
        sentence=verdict(found),
        hosts=say_hosts(found),
        notes=notes(found),
        found=shown,
        cut=len(found.ranks) + len(found.order) - len(shown.ranks) - len(shown.order),
    )


def _cut(found: Stragglers, most: int) -> Stragglers:
    ranks = found.ranks[:most]
    return msgspec.structs.replace(
        found,
        ranks=[_cut_evidence(one, most) for one in ranks],
        order=[_cut_evidence(one, most) for one in found.order[: most - len(ranks)]],
        hosts=found.hosts[:most],
        slow_links=found.slow_links[:most],
        iterations=found.iterations[:most],
        not_captured=found.not_captured[:most],
    )


def _cut_evidence(one: Straggler, most: int) -> Straggler:
    evidence = [msgspec.structs.replace(shown, iterations=shown.iterations[:most]) for shown in one.evidence[:most]]
    return msgspec.structs.replace(one, evidence=evidence)
