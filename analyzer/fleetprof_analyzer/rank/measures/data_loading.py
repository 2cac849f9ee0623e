"""The time that a rank's host waited for batches (docs/measures.md#data-loading).

Guarantees: pure; what several threads wait at once counts once; None where nothing shows a wait.
"""

from fleetprof_analyzer.trace.classes import is_data_loading
from fleetprof_analyzer.trace.intervals import Union, join, length, union
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.trace import Category, Trace


def measure_data_loading(trace: Trace, sampled: Union) -> int | None:
    """The union of the ranges that wait for a batch, over all threads, and of what samples show as that, ns."""
    rows = trace.rows
    ranges = (rows.category == Category.OPERATOR) | (rows.category == Category.ANNOTATION)
    waits = rows.select(ranges & where_name(rows, trace.names, is_data_loading))
    found = join(union(waits.start_ns, waits.end_ns), sampled)
    return length(found) if len(waits) or len(sampled[0]) else None
