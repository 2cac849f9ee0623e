"""The door for the sidecar: a rank's summary made where its trace was taken, from two files.

Guarantees: the same code, and so the same summary, as in the analyzer's Job; imports no boto3; reads
within `memory_bytes`; what is wrong with the trace stands in the summary.
"""

from collections.abc import Sequence
from pathlib import Path

from fleetprof_api.kernel_class import KernelClass

from fleetprof_analyzer.capture.folder import summarise_file
from fleetprof_analyzer.capture.memory import limits_within
from fleetprof_analyzer.capture.stored_capture import read_samples
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.stored_summary import Unusable, pack_summary
from fleetprof_analyzer.trace.problems import Problems


def make_summary(
    trace: Path,
    samples: Path | None,
    *,
    rank: int,
    first_step: int | None,
    iterations: int | None,
    memory_bytes: int | None,
    kernel_classes: Sequence[KernelClass] = (),
    iteration_range: str = "",
) -> bytes:
    """`summary.json.gz` of a rank. Without `first_step` the window began at a time. Raises OSError, ValueError."""
    problems = Problems()
    summary = summarise_file(
        lambda: trace.open("rb"),
        f"ranks/{rank}/trace.json.gz",
        samples=read_samples(lambda: samples.open("rb"), problems) if samples is not None else None,
        assigned=rank,
        terms=RecordingTerms(
            "time" if first_step is None else "step", first_step, iterations, kernel_classes, iteration_range
        ),
        problems=problems,
        trace_bytes=trace.stat().st_size,
        limits=limits_within(memory_bytes),
    )
    samples_bytes = samples.stat().st_size if samples is not None else 0
    try:
        return pack_summary(summary, trace_bytes=trace.stat().st_size, samples_bytes=samples_bytes)
    except Unusable as error:
        raise ValueError(str(error)) from None
