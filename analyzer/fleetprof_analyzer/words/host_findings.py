"""What the training threads of all ranks spend time on, and what to try.

Guarantees: pure; what was not sampled is said.
"""

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report_tables import StageName

from fleetprof_analyzer.job.findings.found import (
    FullHosts,
    HostLoading,
    HostSilence,
    SomeLongIterations,
    WaitsForCores,
)
from fleetprof_analyzer.words.code_places import name_code_place
from fleetprof_analyzer.words.ranks import name_numbers, say_ordinal


def say_host_finding(
    facts: HostLoading | HostSilence | WaitsForCores | FullHosts, place: PlaceInCode | None
) -> tuple[str, str]:
    """(what it is, what to try)."""
    match facts:
        case HostLoading():
            cheaper = "prepare samples more cheaply" if place is None else f"make {name_code_place(place)} cheaper"
            return f"{_say_threads(facts.ranks, 'wait')} for the next batch", say_faster_loading(
                "give the DataLoader more workers and prefetching", cheaper, cores_busy=facts.cores_busy
            )
        case HostSilence():
            return (
                f"{_say_threads(facts.ranks, 'run')} no operator{_say_between(facts.between)}",
                "do the work there less often, or on another thread; a capture of more iterations may name its line"
                if place is None
                else f"look at {name_code_place(place)}: do it less often, or on another thread",
            )
        case WaitsForCores():
            return (
                f"{_say_threads(facts.ranks, 'wait')} for a core, though ready to run",
                "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores, or raise the CPU limit",
            )
        case FullHosts():
            whose = "the ranks' hosts" if facts.ranks > 1 else "the rank's host"
            return (
                f"all cores of {whose} are busy ({facts.busy_permille / 10:.0f} %), and iterations differ in "
                "length; whether the training threads wait for a core was not sampled",
                "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores; a capture of more "
                "iterations samples the training threads, unless it is told not to (--thread-samples Never)",
            )


def say_faster_loading(more: str, cheaper: str, *, cores_busy: bool) -> str:
    """More workers help only where a core is left for them."""
    return (
        f"{cheaper}: the cores are busy, and more workers would share them" if cores_busy else f"{more}, or {cheaper}"
    )


def say_long_iterations(facts: SomeLongIterations, place: PlaceInCode | None) -> tuple[str, str]:
    """(what it is, what to try)."""
    rhythm = f" (every {say_ordinal(facts.every)})" if facts.every else ""
    verb = "take" if len(facts.numbers) > 1 else "takes"
    stage = "" if facts.stage is None else f", most of it {_say_stage(facts.stage)}"
    longer = f"{facts.times:.0f} times as long as the others"
    where = name_numbers("iteration", facts.numbers)
    what = f"look at {name_code_place(place)}" if place is not None else f"look at what the loop does in {where} only"
    return (
        f"{len(facts.numbers)} of {facts.of} iterations{rhythm} {verb} {longer}{stage}",
        f"{what} (evaluation, a checkpoint, logging?): do {'it' if place is not None else 'that'} less often, or on "
        "another thread or in another process",
    )


def _say_threads(ranks: int, verb: str) -> str:
    """`the training threads of all ranks wait`, `the training thread waits`."""
    return f"the training threads of all ranks {verb}" if ranks > 1 else f"the training thread {verb}s"


def _say_between(between: tuple[str, str] | None) -> str:
    if between is None:
        return ""
    after, before = between
    return f", most of it between {after or 'the start'} and {before}"


def _say_stage(stage: StageName) -> str:
    match stage:
        case "host":
            return "on the host between stages"
        case "other":
            return "in operators outside of all stages"
        case _:
            return f"in the stage {stage.replace('_', ' ')}"
