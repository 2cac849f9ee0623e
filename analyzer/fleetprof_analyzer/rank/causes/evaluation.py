"""A loop that evaluates between its steps: functions that say so, whose operators autograd does not go back through.

Guarantees: pure; a name alone proves nothing.
"""

from typing import Final

from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.known_code import EVALUATES
from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.stacks import look_for, tell
from fleetprof_analyzer.trace.intervals import covered

_MOST_TRAINING: Final = 0.1  # of the operators in there


def find_evaluation(view: RankView) -> KnownCause | None:
    """The time in which such a function is on the stack."""
    thread, shown = view.stages.thread, look_for(view, EVALUATES)
    if thread is None:
        return None
    inside = covered(thread.top.start_ns, shown.spans)
    if not inside.any() or (inside & thread.trains).sum() > _MOST_TRAINING * inside.sum():
        return None
    return tell("evaluation", view, shown.spans, shown.place)
