"""Between which operators a late rank's host code lies, where its main thread runs nothing for longer than its peers'.

Which operators lie around it is known without samples and without stacks. Guarantees: pure; nothing is said where no
silence holds a quarter of the lateness.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import Silence
from fleetprof_api.report.stragglers import Cause, Evidence, Straggler, Stragglers

_OF_HOST: Final[frozenset[Cause]] = frozenset(("host", "mixed"))
_LEAST_SHARE: Final = 0.25
_LONGEST_NAME: Final = 80


def add_silences(found: Stragglers, ranks: Sequence[Rank]) -> Stragglers:
    """The section with the silences of its late ranks as evidence, and with their line where no other is known."""
    return msgspec.structs.replace(found, ranks=[_add_silence(one, ranks) for one in found.ranks])


def _add_silence(late: Straggler, ranks: Sequence[Rank]) -> Straggler:
    mine = next((rank for rank in ranks if rank.rank == late.rank), None)
    if mine is None or mine.stages is None:
        return late
    if late.cause == "data_loading":
        return _at(late, mine.stages.loading_place)
    others = [_silences(rank) for rank in ranks if rank.kind == mine.kind and rank is not mine and rank.stages]
    if late.cause not in _OF_HOST or not others:
        return late
    beyond = {
        pair: (own_ns, float(median(other.get(pair, 0.0) for other in others)))
        for pair, own_ns in _silences(mine).items()
    }
    if not beyond:
        return late
    pair = max(beyond, key=lambda one: beyond[one][0] - beyond[one][1])
    own_ns, usual_ns = beyond[pair]
    if own_ns - usual_ns < _LEAST_SHARE * late.lateness_ns:
        return late
    after, before = (name[:_LONGEST_NAME] for name in pair)
    shown = Evidence(
        measure=f"its main thread runs nothing between {after or 'the start'} and {before or 'the end'}",
        value=round(own_ns), usual=round(usual_ns), unit="ns per iteration",
    )  # fmt: skip
    place = next(one.place for one in mine.stages.silences if _pair(one) == pair)
    return _at(msgspec.structs.replace(late, evidence=[*late.evidence, shown]), place)


def _at(late: Straggler, place: PlaceInCode | None) -> Straggler:
    return late if late.place is not None else msgspec.structs.replace(late, place=place)


def _silences(rank: Rank) -> dict[tuple[str, str], float]:
    """The operators around each silence -> ns per iteration."""
    if rank.stages is None or not rank.stages.iterations:
        return {}
    return {_pair(one): one.time_ns / rank.stages.iterations for one in rank.stages.silences}


def _pair(one: Silence) -> tuple[str, str]:
    return one.after, one.before
