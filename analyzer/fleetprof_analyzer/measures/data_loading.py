"""How long a rank's host waited for batches (docs/measures.md#data-loading).

Guarantees: pure; what several threads wait at once counts once; None where nothing marks a wait.
"""

from fleetprof_analyzer.classes import is_data_loading
from fleetprof_analyzer.intervals import length, union
from fleetprof_analyzer.naming import where_name
from fleetprof_analyzer.trace import Category, Trace


def measure_data_loading(trace: Trace) -> int | None:
    """The union of the ranges that wait for a batch, over all threads, ns."""
    rows = trace.rows
    ranges = (rows.category == Category.OPERATOR) | (rows.category == Category.ANNOTATION)
    waits = rows.select(ranges & where_name(rows, trace.names, is_data_loading))
    return length(union(waits.start_ns, waits.end_ns)) if len(waits) else None
