"""Causes of idle time and stages in words and sums; the same for terminal and page.

Guarantees: causes that are not there are left out; parts stand beside their whole.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from fleetprof_api.quantities import duration, share
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.idle_causes import IDLE_CAUSES, IdleCause, IdleCauses
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import StageName

from fleetprof_analyzer.words.text import plain

_FEWEST_ITERATIONS: Final = 3
_MOST_SILENCES: Final = 3
_STAGES: Final = {"host": "host, between stages"}


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause by its name in IDLE_CAUSES, its time, and its parts as text."""

    name: str
    time_ns: int
    parts: str

    @property
    def row(self) -> IdleCause:
        """The cause in words."""
        return IDLE_CAUSES[self.name]


def add_stages(ranks: Sequence[Rank]) -> list[tuple[str, int, int]]:
    """(stage in words, time of the main thread, time of device work) over all ranks, in the order of an iteration."""
    sums: dict[str, tuple[int, int]] = {}
    for rank in ranks:
        for stage in rank.stages.stages if rank.stages is not None else []:
            time_ns, device_ns = sums.get(stage.stage, (0, 0))
            sums[stage.stage] = (time_ns + stage.time_ns, device_ns + stage.device_ns)
    named = {stage: _STAGES.get(stage, stage.replace("_", " ")) for stage in get_args(StageName)}
    return [(words, *sums[stage]) for stage, words in named.items() if stage in sums]


@dataclass(frozen=True, slots=True)
class SilenceInWords:
    """A place where the host ran nothing: between which rows, how long over all ranks, and at which line if known."""

    words: str
    time_ns: int
    place: PlaceInCode | None


def find_silences(ranks: Sequence[Rank]) -> list[SilenceInWords]:
    """The longest places of the stage host over all ranks."""
    sums = Counter[tuple[str, str]]()
    places: dict[tuple[str, str], tuple[int, PlaceInCode]] = {}
    for rank in ranks:
        for one in rank.stages.silences if rank.stages is not None else []:
            key = one.after, one.before
            sums[key] += one.time_ns
            if one.place is not None and one.time_ns > places.get(key, (-1, one.place))[0]:
                places[key] = one.time_ns, one.place
    return [
        SilenceInWords(
            f"between {plain(after, 80) or 'the start'} and {plain(before, 80) or 'the end'}",
            time_ns,
            places[after, before][1] if (after, before) in places else None,
        )
        for (after, before), time_ns in sorted(sums.items(), key=lambda one: (-one[1], one[0]))[:_MOST_SILENCES]
    ]


def list_causes(idle_ns: IdleCauses) -> list[Cause]:
    """The causes that took any time, the largest first."""
    causes = []
    for name, row in IDLE_CAUSES.items():
        time_ns = getattr(idle_ns, name)
        parts = [(text, getattr(idle_ns, part)) for part, text in row.parts.items()]
        shares = ", ".join(f"{text} {share(part, time_ns)}" for text, part in parts if part)
        if time_ns:
            causes.append(Cause(name, time_ns, f"of it {shares}" if shares else ""))
    return sorted(causes, key=lambda cause: -cause.time_ns)


def add_iterations(ranks: Sequence[Rank]) -> list[tuple[int, int, IdleCauses]]:
    """(iteration, idle time, its causes) over all ranks, by the number of the iteration; empty without a GPU."""
    by_index: dict[int, list[IdleCauses]] = {}
    for rank in ranks:
        for iteration in rank.iterations:
            if iteration.idle_ns is not None:
                by_index.setdefault(iteration.index, []).append(iteration.idle_ns)
    found = []
    for index, parts in sorted(by_index.items()):
        causes = IdleCauses(**{f: sum(getattr(part, f) for part in parts) for f in IdleCauses.__struct_fields__})
        found.append((index, sum(getattr(causes, name) for name in IDLE_CAUSES), causes))
    return found


def longest_iteration(ranks: Sequence[Rank]) -> str:
    """The iteration with the most idle time, where it has clearly more than the middle one; else ""."""
    found = sorted(add_iterations(ranks), key=lambda item: (item[1], -item[0]))
    if len(found) < _FEWEST_ITERATIONS or 2 * found[-1][1] < 3 * found[len(found) // 2][1]:
        return ""
    index, idle, causes = found[-1]
    first = list_causes(causes)[0]
    return f"most in iteration {index}: {duration(idle)}, of it {first.row.title} {share(first.time_ns, idle)}"
