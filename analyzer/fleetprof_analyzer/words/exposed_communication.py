"""What to try against communication that nothing hides: only what its facts speak for.

Guarantees: pure.
"""

from typing import Final

from fleetprof_api.report.stragglers import PipelineBubbles

from fleetprof_analyzer.job.findings.found import ExposedCommunication

_SMALL_BYTES: Final = 1 << 20  # a message below it takes about as long as an empty one (docs/measures.md#findings)
_BEYOND_IDEAL: Final = 0.05
_EXPOSED: Final = "no computation hides the communication"


def say_exposed_communication(found: ExposedCommunication) -> tuple[str, str]:
    """(what it is, what to try)."""
    match found.spent:
        case "not_known":
            if found.ranks > 1:
                return (
                    f"{_EXPOSED}; the ranks could not be compared, so whether they send or wait is not known",
                    "look in the timeline whether the ranks begin the longest together: if so they send, else they "
                    "wait for the last",
                )
            return _EXPOSED, "capture all ranks: one rank's trace does not tell sending from waiting"
        case "waiting":
            return (
                "the ranks wait for each other in their collectives",
                "make work and pauses even over the ranks; sending takes the smaller part of that time",
            )
        case "schedule":
            assert found.pipeline is not None
            return _say_schedule(found.pipeline)
        case "on_host":
            return (
                _EXPOSED,
                "leave each rank a core for sending beside those of its threads (OMP_NUM_THREADS), and capture again",
            )
        case "sending":
            return _say_sending(found.mean_bytes)


def _say_schedule(found: PipelineBubbles) -> tuple[str, str]:
    is_uneven = found.ideal_share is not None and found.share > found.ideal_share + _BEYOND_IDEAL
    more = "run more microbatches in each iteration, or interleave more parts of the model"
    return say_bubbles(found), f"give all stages the same work; {more}" if is_uneven else more


def say_bubbles(found: PipelineBubbles) -> str:
    """What the schedule costs, beside what it would cost with equal stages, where that is known."""
    waits = f"by the pipeline's schedule each device waits {100 * found.share:.1f} % of the iteration on average"
    if found.ideal_share is None:
        return waits
    kind, parts = "1F1B", ""
    if found.chunks > 1:
        kind, parts = "interleaved 1F1B", f", {found.chunks} parts of the model on each,"
    stages = f"{found.stages} equal stages{parts} and {found.microbatches} microbatches"
    return f"{waits}; in {kind} with {stages} it is {100 * found.ideal_share:.1f} %"


def _say_sending(mean_bytes: float | None) -> tuple[str, str]:
    if mean_bytes is None:
        return _EXPOSED, (
            "look in the timeline at what runs beside the longest: let it begin earlier, "
            "during the backward pass, or send less often (gradient accumulation)"
        )
    if mean_bytes < _SMALL_BYTES:
        size = f"{mean_bytes / 1024:,.0f} KiB"
        return f"{_EXPOSED}, of {size} a call on average", "send fewer and larger messages (DDP: bucket_cap_mb)"
    size = f"{mean_bytes / (1 << 20):,.0f} MiB"
    return (
        f"{_EXPOSED}, of {size} a call on average",
        "send fewer bytes (gradient accumulation, another sharding, a smaller data type), or send them during the "
        "backward pass",
    )
