"""torch.compile that compiles in the iterations: by its code on the stack, and by what lies before a new region.

Guarantees: pure; a compiled region that is only run is none.
"""

from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.known_code import COMPILES
from fleetprof_analyzer.rank.causes.rank_view import NOTHING, RankView
from fleetprof_analyzer.rank.causes.stacks import look_for, tell
from fleetprof_analyzer.trace.intervals import Union, join, union

_LOOKUP: Final = "TorchDynamo Cache Lookup"
_REGION: Final = "Torch-Compiled Region"
_LEAST_COMPILED_NS: Final = 5_000_000


def find_compilations(view: RankView) -> KnownCause | None:
    """All time in which it compiles."""
    shown = look_for(view, COMPILES)
    return tell("compilation", view, join(shown.spans, _before_new_regions(view)), shown.place)


def _before_new_regions(view: RankView) -> Union:
    """From the end of a look into the cache to the compiled region that follows, where that is new and late."""
    names, rows = view.trace.names, view.trace.rows
    lookups = [number for number, name in enumerate(names) if name == _LOOKUP]
    regions = [number for number, name in enumerate(names) if name.startswith(_REGION)]
    looked = np.sort(rows.end_ns[np.isin(rows.name, lookups)])
    entered = np.isin(rows.name, regions)
    if len(looked) == 0 or not entered.any():
        return NOTHING
    order = np.argsort(rows.start_ns[entered], kind="stable")
    start, name = rows.start_ns[entered][order], rows.name[entered][order]
    _, first = np.unique(name, return_index=True)
    begins = np.sort(start[first])
    position = np.searchsorted(looked, begins, side="right") - 1
    before = np.where(position >= 0, looked[np.maximum(position, 0)], begins)
    late = begins - before >= _LEAST_COMPILED_NS
    return union(before[late], begins[late])
