"""The idle time of a pipeline's schedule in words.

Guarantees: pure.
"""

from fleetprof_api.report.stragglers import PipelineBubbles


def say_bubbles(found: PipelineBubbles) -> str:
    """The cost of the schedule, beside that of equal stages, where it is known."""
    waits = f"by the pipeline's schedule each device waits {100 * found.share:.1f} % of the iteration on average"
    if found.ideal_share is None:
        return waits
    kind, parts = "1F1B", ""
    if found.chunks > 1:
        kind, parts = "interleaved 1F1B", f", {found.chunks} parts of the model on each,"
    stages = f"{found.stages} equal stages{parts} and {found.microbatches} microbatches"
    return f"{waits}; in {kind} with {stages} it is {100 * found.ideal_share:.1f} %"
