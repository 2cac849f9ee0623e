"""The use of the job's time, in one sentence: the largest part that is no computing, its cause, and its place.

Guarantees: pure; shares are the report's; of several kinds of ranks those with GPUs speak.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from fleetprof_api.quantities import percent, share
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding, PartOfTime
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import KindTotal, Rank, Report

from fleetprof_analyzer.findings.cpu_contention import OF_CORES
from fleetprof_analyzer.findings.exposed_communication import OTHER_KIND
from fleetprof_analyzer.findings.known_causes import OF_CAUSES
from fleetprof_analyzer.views.answer import guards
from fleetprof_analyzer.words.causes import add_stages, find_silences, list_causes
from fleetprof_analyzer.words.code import in_brackets, name_place
from fleetprof_analyzer.words.findings import say_briefly
from fleetprof_analyzer.words.launches import find_sampled
from fleetprof_analyzer.words.ranks import name_ranks
from fleetprof_analyzer.words.text import capital, plain
from fleetprof_analyzer.words.window import name_lost_work

_PARTS: Final[Mapping[PartOfTime, str]] = {
    "idle": "idle", "host": "idle", "communication": "communication", "copies": "copies",
}  # fmt: skip
_STAGES: Final = {"host, between stages": "the host between stages", "other": "other operators"}


def say_time(report: Report) -> str:
    """The sentence, with a full stop; "" where no rank was measured. A proven cause that is worth most comes first."""
    total = report.totals[0] if report.totals else None
    if total is None or total.time_ns.span <= 0:
        return ""
    of_kind = [rank for rank in report.ranks if rank.kind == total.kind]
    say = _say_device if total.time_basis == "device" else _say_host
    return f"{_say_proven(report)}{say(report, total, of_kind)}"


def find_proven(report: Report) -> Finding | None:
    """The proven cause that is worth most, or at least half of that: no line or place beside it is to be blamed."""
    known = [one for one in report.findings if one.measure == OF_CAUSES]
    if not known or not guards.PROVEN_CAUSE.allows(known[0].gain_permille, report.findings[0].gain_permille):
        return None
    return known[0]


def _say_proven(report: Report) -> str:
    known = find_proven(report)
    if known is None:
        return ""
    whose = f" on {name_ranks(known.ranks)}" if known.ranks else ""
    saving = f"Potential saving{whose}: {share(known.gain_permille, 1000)} of each iteration"
    return f"{saving}. {capital(say_briefly(known))}. "


def _say_device(report: Report, total: KindTotal, ranks: Sequence[Rank]) -> str:
    unrecorded, span = total.time_ns.unrecorded, total.time_ns.span
    sentence = _say_recorded(report, total, ranks)
    if not guards.NOT_RECORDED.allows(unrecorded, span):
        return sentence
    return f"{share(unrecorded, span)} of {_whose(total)} was not recorded: {name_lost_work(total)}. {sentence}"


def _whose(total: KindTotal) -> str:
    return "the GPU's time" if total.ranks == 1 else "the GPUs' time"


def _say_recorded(report: Report, total: KindTotal, ranks: Sequence[Rank]) -> str:
    time_ns, span = total.time_ns, total.time_ns.span
    whose = _whose(total)
    lost = {
        "idle": time_ns.idle, "communication": time_ns.exposed_communication, "copies": time_ns.exposed_memory,
    }  # fmt: skip
    # A finding about ranks or iterations says nothing of the parts, and one may be too small to be the answer.
    most = _PARTS.get(report.findings[0].part, "") if report.findings else ""
    if not lost.get(most):
        most = max(lost, key=lambda name: lost[name])
    if not guards.LARGEST_PART.allows(lost[most], span):
        longest = report.kernels[0] if report.kernels else None
        busiest = ""
        if longest is not None and longest.name != "(other)":
            busiest = f"; the longest kernel, {plain(longest.name, 60)}, takes {share(longest.total_ns, span)}"
        return f"{share(time_ns.compute, span)} of {whose} is computing{busiest}."
    if most == "idle":
        because = (
            ""
            if find_sampled(ranks)
            else _why_idle(total.idle_ns, time_ns.idle, ranks, blames=find_proven(report) is None)
        )
        return f"{share(time_ns.idle, span)} of {whose} is idle{because}."
    if most == "communication":
        exposed = share(time_ns.exposed_communication, span)
        return f"{exposed} of {whose} is communication that no computation hides{_which(report)}."
    return f"{share(time_ns.exposed_memory, span)} of {whose} is copies that nothing hides."


def _why_idle(idle_ns: IdleCauses | None, idle: int, ranks: Sequence[Rank], *, blames: bool) -> str:
    causes = [] if idle_ns is None else list_causes(idle_ns)
    if not causes:
        return ""
    first = causes[0]
    is_most = guards.MOST_OF_IDLE.allows(first.time_ns, idle)
    if first.name == "unknown" and is_most:
        return f"; {first.row.because}"
    place = ""
    if first.name == "host" and blames:
        # A silence that is shorter than half of this idle time does not explain most of it.
        longest = next(
            (one for one in find_silences(ranks) if guards.MOSTLY_SILENT.allows(one.time_ns, first.time_ns)), None
        )
        place = "" if longest is None else f", mostly {longest.words}{in_brackets(longest.place)}"
    most = "most of it" if is_most else "the largest part"
    return f", {most} ({share(first.time_ns, idle)}) because {first.row.because}{place}"


def _which(report: Report) -> str:
    rows = [row for row in report.communication if row.total_ns > row.overlapped_ns]
    if not rows:
        return ""
    exposed = [one.total_ns - one.overlapped_ns for one in rows]
    row = rows[exposed.index(max(exposed))]
    part = "most of it" if guards.MOST_OF_COMMUNICATION.allows(max(exposed), sum(exposed)) else "the largest part of it"
    group = f" in group {plain(row.group, 30)}" if row.group else ""
    kind = "of a kind that names do not tell" if row.kind == OTHER_KIND else plain(row.kind.replace("_", "-"), 30)
    return f", {part} {kind}{group}"


def _say_host(report: Report, total: KindTotal, ranks: Sequence[Rank]) -> str:
    """The use of time of ranks without GPU: stages where they are known, and what of them is waiting for others."""
    time_ns = total.time_ns
    waits, whose = "", "the ranks'" if total.ranks > 1 else "the rank's"
    if guards.COLLECTIVES.allows(time_ns.exposed_communication, time_ns.span):
        exposed = share(time_ns.exposed_communication, time_ns.span)
        waits = f"{exposed} of {whose} time goes to collectives and to waiting for other ranks in them"
    stages = sorted(add_stages(ranks), key=lambda stage: -stage[1])
    whole = sum(time for _, time, _ in stages)
    if not whole:
        sentence = waits or f"{share(time_ns.compute, time_ns.span)} of {whose} time is operators"
        return f"{sentence[:1].upper()}{sentence[1:]}."
    shown = [
        f"{percent(100 * time / whole)} is {_STAGES.get(words, words)}{_where(words, time, ranks, report)}"
        for words, time, _ in stages[:2]
        if guards.STAGE.allows(time, whole)
    ]
    of_stages = f"of an iteration, {' and '.join(shown)}"
    own = stages[0][0].startswith(("data loading", "host"))
    if not waits or (own and stages[0][1] * time_ns.span >= time_ns.exposed_communication * whole):
        sentence = f"{of_stages}. {waits}" if waits else of_stages
    else:
        sentence = f"{waits}. {capital(of_stages)}"
    return f"{sentence[:1].upper()}{sentence[1:]}{_wait_for_cores(report)}."


def _wait_for_cores(report: Report) -> str:
    """The wait for cores, which runs through all stages, where it is worth most: the advice is about that."""
    first = report.findings[0] if report.findings else None
    if first is None or first.measure != OF_CORES:
        return ""
    who = "the training threads wait" if len(report.ranks) > 1 else "the training thread waits"
    return f". {capital(who)} for a core for {share(first.gain_permille, 1000)} of the time"


def _find_place(words: str, ranks: Sequence[Rank]) -> PlaceInCode | None:
    """The line of a stage on the rank with most of it, of those that know one."""
    stages = [
        stage for rank in ranks if rank.stages is not None for stage in rank.stages.stages if stage.stage == words
    ]
    return max(stages, key=lambda stage: (stage.place is not None, stage.time_ns)).place if stages else None


def _where(words: str, time_ns: int, ranks: Sequence[Rank], report: Report) -> str:
    """The place of a stage; nothing where no place holds most of its time, or another cause is proven."""
    if find_proven(report) is not None:
        return ""
    if words == "data loading":
        return in_brackets(next((one.place for one in report.findings if one.kind == "data_loading"), None))
    if not words.startswith("host"):
        place = _find_place(words, ranks)
        return f" (most of it at {name_place(place)})" if place else ""
    silences = find_silences(ranks)
    if not silences or not guards.SILENT_STAGE.allows(silences[0].time_ns, time_ns):
        return ""
    at = name_place(silences[0].place)
    return f" ({silences[0].words}{', ' + at if at else ''})"
