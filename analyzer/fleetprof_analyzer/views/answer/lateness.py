"""The ranks that hold the job up, in one sentence: their cause, their place in the code, the potential saving.

Guarantees: pure; says no more than the verdict does; "" where the verdict names nothing that costs time.
"""

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Final

from fleetprof_api.quantities import duration, percent
from fleetprof_api.report.report import Report
from fleetprof_api.report.stragglers import Straggler, Stragglers

from fleetprof_analyzer.job.stragglers.sampled_device import find_sampled_device
from fleetprof_analyzer.words.code import in_brackets
from fleetprof_analyzer.words.floor import say_floor, say_lower, say_nobody
from fleetprof_analyzer.words.ranks import (
    find_rest,
    is_slower_of_two,
    name_hosts,
    name_ranks,
    name_stragglers,
    say_ordinal,
)
from fleetprof_analyzer.words.sampled_device import say_sampled_device
from fleetprof_analyzer.words.text import capital
from fleetprof_analyzer.words.verdict_reasons import say_cost, say_iterations

_WAITS_FOR: Final[Mapping[str, str]] = {
    "data_loading": "its data loading",
    "host": "its host code",
    "device_wait": "its device, which does not begin work that is launched",
    "garbage_collection": "its garbage collector",
    "cpu_contention": "its turn on a CPU core that others use too",
    "unequal_work": "the larger share of work that it was given",
    "slow_gpu": "its GPU, which is slower than the others",
    "throttling": "its GPU, whose clock drops",
    "network": "its network link",
    "mixed": "it, for several reasons",
}
_HOST_WAITS_FOR: Final[Mapping[str, str]] = {
    "data_loading": "its data loading",
    "host": "the host code of its ranks, which takes longer there",
    "device_wait": "the devices of its ranks, which do not begin work that is launched",
    "garbage_collection": "the garbage collectors of its ranks",
    "cpu_contention": "its CPU cores, which its ranks get too late",
    "unequal_work": "the larger share of work that its ranks were given",
    "slow_gpu": "its GPUs, which are slower than the others",
    "throttling": "its GPUs, whose clocks drop",
    "network": "its network links",
    "mixed": "it, for several reasons",
}
_NO_WORK: Final = ("data_loading", "host")  # causes of a slow stage that even stages would not mend
_MOVES: Final[Mapping[str, str]] = {
    "unequal_work": ", because their shares of the work differ from iteration to iteration",
    "data_loading": ", because now one rank's batch is late and now another's",
    "garbage_collection": ", because each collects garbage at another time",
    "host": ", because their hosts pause at different times",
    "cpu_contention": ", because they share cores with each other or with other programs",
}
_HIDDEN: Final = 0.005
_AHEAD: Final = 1.25  # device time over the host's: more than what a window has before and after its iterations


def say_lateness(report: Report, *, in_part: bool = False) -> str:
    """The sentence of the verdict, with a full stop; `in_part`: ranks of the job are not in the report."""
    found = report.stragglers
    if found is None:
        return ""
    match found.verdict:
        case "straggler" if found.ranks:
            return _say_stragglers(found, report)
        case "heavy_stage" if found.ranks:
            who = name_ranks([one.rank for one in found.ranks])
            cause = found.ranks[0].cause
            why, how = ("it", "with even stages")
            if cause in _NO_WORK:
                why, how = _WAITS_FOR[cause], "with it as fast as the others"
            return (
                f"The pipeline stage of {who} holds the job up: the others wait for {why}.{_save(found, report, how)}"
            )
        case "slow_link":
            return f"A slow link holds the job up: {found.reason}.{_save(found, report)}"
        case "moving_imbalance":
            moving = _MOVES.get(found.cause or "", "")
            return (
                f"{capital(say_nobody(found, 'no single rank'))}, but the ranks are slow in turns{moving}."
                f"{_save(found, report)}"
            )
        case "undecided" if found.candidate is not None:
            one = found.candidate
            needed = say_iterations(one.iterations_needed)
            return (
                f"Cannot tell yet whether rank {one.rank} is late: its potential saving is {say_cost(one)}; {needed}."
            )
        case "nobody" if found.smallest_gain is None and found.reason:
            return f"{capital(found.reason)}."
        case "undecided":
            floor = "" if found.smallest_gain is None else f"; {say_floor(found)}{say_lower(found, report)}"
            return f"Cannot tell yet whether a rank is late: {found.reason}{floor}."
        case "nobody":
            who = f"none of the {len(report.ranks)} ranks in this report" if in_part else "no rank"
            return f"{capital(say_nobody(found, who))}{say_lower(found, report)}."
        case "not_judged" if found.reason:
            return f"Cannot tell whether a rank is late: {found.reason}."
    return ""


def _say_stragglers(found: Stragglers, report: Report) -> str:
    if found.hosts:
        return _say_hosts(found, report)
    ranks: Sequence[Straggler] = found.ranks
    first = ranks[0]
    who = name_stragglers(ranks)
    sampled = say_sampled_device(find_sampled_device(report))
    why = (f"its GPU, which {sampled}" if sampled else _WAITS_FOR.get(first.cause, "it")) + in_brackets(first.place)
    rhythm = first.every
    often = f", in every {say_ordinal(rhythm)} iteration" if rhythm else ""
    if len(ranks) == 1:
        doubt = " (the slower of two)" if first.peers == 1 else ""
        return (
            f"{capital(who)} holds the job up{doubt}: the others wait for {why}{often}."
            f"{_save(found, report, 'with it as fast as the others')}"
        )
    of_first = why.replace("its ", f"rank {first.rank}'s ", 1) if why.startswith("its ") else f"rank {first.rank}"
    return (
        f"{capital(who)} hold the job up: the others wait for them, most for {of_first}{often}."
        f"{_save(found, report, 'with them as fast as the others')}"
    )


def _say_hosts(found: Stragglers, report: Report) -> str:
    """Names hosts that are late as a whole, and of ranks that are late by themselves beside them."""
    rest, first = find_rest(found), found.hosts[0]
    who = " and ".join([name_hosts(found.hosts), *([name_stragglers(rest)] if rest else [])])
    sampled = say_sampled_device(find_sampled_device(report))
    of_gpu = f"its GPUs: that of rank {found.ranks[0].rank} {sampled}"
    why = of_gpu if sampled else _HOST_WAITS_FOR.get(first.cause, "it")
    if len(found.hosts) == 1 and not rest:
        doubt = " (the slower of two)" if is_slower_of_two(found) else ""
        return (
            f"{capital(who)} holds the job up{doubt}: the others wait for {why}."
            f"{_save(found, report, 'with it as fast as the others')}"
        )
    most = "" if why == "it" else f", on {first.name} for {why}"
    return (
        f"{capital(who)} hold the job up: the others wait for them{most}."
        f"{_save(found, report, 'with them as fast as the others')}"
    )


def _save(found: Stragglers, report: Report, how: str = "") -> str:
    """The potential saving, with the mean iteration without the fault where iterations are known."""
    saving = f" Potential saving: {percent(100 * found.gain)} of each iteration"
    durations = [iteration.duration_ns for rank in report.ranks for iteration in rank.iterations]
    if not durations or found.gain < _HIDDEN:
        return f"{saving}."
    # The gain is a share of the window, so it is that of the mean: one iteration in four may hold all of it.
    now = max(mean(durations), _pace_of_devices(report))
    about = "about " if found.approximate else ""
    then = f"{about}{duration(round(now * (1 - found.gain)))}"
    how = how and f" {how}"
    return f"{saving}, which would take {then} on average instead of {duration(round(now))}{how}."


def _pace_of_devices(report: Report) -> float:
    """ns of device time per iteration, where hosts launched all their iterations long before these were done; else 0.

    Iterations are measured on the host, and a host that never waits for its device is far ahead of it.
    """
    paces = [
        rank.time_ns.span / len(rank.iterations) for rank in report.ranks if rank.kind == "gpu" and rank.iterations
    ]
    durations = [iteration.duration_ns for rank in report.ranks for iteration in rank.iterations]
    pace = median(paces) if paces else 0.0
    return pace if pace > _AHEAD * median(durations) else 0.0
