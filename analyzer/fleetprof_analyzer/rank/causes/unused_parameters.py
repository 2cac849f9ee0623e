"""DistributedDataParallel's search for parameters that a step does not use: it has a row of its own in each step.

Guarantees: pure. Source: torch/csrc/distributed/c10d/reducer.cpp.
"""

import re
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.stacks import tell
from fleetprof_analyzer.trace.intervals import union
from fleetprof_analyzer.trace.naming import matcher, where_name

_SEARCH: Final = re.compile(r"^torch(?:\.|::)distributed(?:\.|::)ddp(?:\.|::)reducer::search_unused_parameters$")


def find_unused_parameters(view: RankView) -> KnownCause | None:
    """The time of these rows."""
    rows = view.trace.rows.select(where_name(view.trace.rows, view.trace.names, matcher(_SEARCH)))
    return tell("unused_parameters", view, union(rows.start_ns, rows.end_ns), None)
