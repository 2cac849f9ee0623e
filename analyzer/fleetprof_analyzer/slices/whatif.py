"""The iteration under changes, as the page asks about it. Pure."""

import msgspec
from fleetprof_api.report.report import Report
from fleetprof_api.slices.tables import WhatIfSlice

from fleetprof_analyzer.whatif.batch_sizes import find_samples, sized_capture


def make_whatif(report: Report, most: int) -> WhatIfSlice:
    """The predictions, at most so many scenarios and iterations."""
    samples = find_samples(report)
    captured = sized_capture(report, samples or 0.0)
    made = report.predictions
    scenarios = [] if made is None else made.scenarios
    return WhatIfSlice(
        ranks=len(report.ranks),
        samples=samples,
        iteration_ns=captured.iteration_ns[:most],
        memory_bytes=captured.memory_bytes,
        predictions=None if made is None else msgspec.structs.replace(made, scenarios=scenarios[:most]),
        cut=max(0, len(scenarios) - most) + max(0, len(captured.iteration_ns) - most),
    )
