"""What the training threads of all CPU-only ranks spend time on, and what to try.

Guarantees: pure; what was not sampled is said.
"""

from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.job.findings.found import FullHosts, HostLoading, HostSilence, WaitsForCores
from fleetprof_analyzer.words.code_places import name_code_place


def say_host_finding(
    facts: HostLoading | HostSilence | WaitsForCores | FullHosts, place: PlaceInCode | None
) -> tuple[str, str]:
    """(what it is, what to try)."""
    match facts:
        case HostLoading():
            return (
                "the training threads of all ranks wait for the next batch",
                "give the DataLoader more workers and prefetching"
                + (
                    ", or prepare samples more cheaply"
                    if place is None
                    else f", or make {name_code_place(place)} cheaper"
                ),
            )
        case HostSilence():
            return (
                f"the training threads of all ranks run no operator{_say_between(facts.between)}",
                "do the work there less often, or on another thread; a capture of more iterations may name its line"
                if place is None
                else f"look at {name_code_place(place)}: do it less often, or on another thread",
            )
        case WaitsForCores():
            return (
                "the training threads of all ranks wait for a core, though they are ready to run",
                "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores, or raise the CPU limit",
            )
        case FullHosts():
            return (
                f"all cores of the ranks' hosts are busy ({facts.busy_permille / 10:.0f} %), and iterations differ in "
                "length; whether the training threads wait for a core was not sampled",
                "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores; a capture of more "
                "iterations samples the training threads, unless it is told not to (--thread-samples Never)",
            )


def _say_between(between: tuple[str, str] | None) -> str:
    if between is None:
        return ""
    after, before = between
    return f", most of it between {after or 'the start'} and {before}"
