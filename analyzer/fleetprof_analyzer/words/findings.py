"""Findings of a report with their sentences: what it is, and what to try.

Guarantees: pure; the sentences are made of the findings' facts alone, those of a straggler verdict also of its reason.
"""

from collections.abc import Sequence

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.job.findings.found import (
    ExposedCommunication,
    ExposedCopies,
    FullHosts,
    HeldUp,
    HostLoading,
    HostSilence,
    IdleDevice,
    MeasuredFinding,
    ProvenCause,
    SomeLongIterations,
    WaitsForCores,
)
from fleetprof_analyzer.job.stragglers.sampled_device import SampledDevice
from fleetprof_analyzer.words.causes.known_causes import say_proven_cause
from fleetprof_analyzer.words.exposed_communication import say_exposed_communication
from fleetprof_analyzer.words.host_findings import say_host_finding, say_long_iterations
from fleetprof_analyzer.words.idle_device import say_idle_device
from fleetprof_analyzer.words.straggler_advice import straggler_advice


def say_findings(
    found: Sequence[MeasuredFinding], stragglers: Stragglers | None, device: SampledDevice | None = None
) -> list[Finding]:
    """In the same order; `stragglers` is the report's section, with its reason in words; `device` that of its rank."""
    return [_say(one, stragglers, device) for one in found]


def _say(found: MeasuredFinding, stragglers: Stragglers | None, device: SampledDevice | None) -> Finding:
    message, advice = _say_facts(found, stragglers, device)
    return Finding(
        kind=found.kind,
        message=message,
        advice=advice,
        gain_permille=found.gain_permille,
        measure=found.measure,
        value_ns=found.value_ns,
        ranks=found.ranks,
        names=found.names,
        place=found.place,
        part=found.guard.part,
    )


def _say_facts(found: MeasuredFinding, stragglers: Stragglers | None, device: SampledDevice | None) -> tuple[str, str]:
    """(what it is, what to try)."""
    match facts := found.facts:
        case HeldUp():
            return ("", "") if stragglers is None else _say_held_up(stragglers, found.place, device)
        case IdleDevice():
            return say_idle_device(facts, found.names)
        case ExposedCommunication():
            return say_exposed_communication(facts)
        case ExposedCopies():
            pinned = "copy from pinned host memory with non_blocking=True (pin_memory=True in the DataLoader)"
            return (
                "nothing hides copies and sets of memory",
                pinned
                if facts.pageable
                else "look at the longest copies: leave out what is copied or transposed twice",
            )
        case HostLoading() | HostSilence() | WaitsForCores() | FullHosts():
            return say_host_finding(facts, found.place)
        case SomeLongIterations():
            return say_long_iterations(facts, found.place)
        case ProvenCause():
            return say_proven_cause(facts)


def _say_held_up(found: Stragglers, place: PlaceInCode | None, device: SampledDevice | None) -> tuple[str, str]:
    return found.reason[:1].upper() + found.reason[1:], straggler_advice(found, place, device)
