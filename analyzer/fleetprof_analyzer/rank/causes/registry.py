"""The known causes of lost time that a rank's trace and samples prove, each by its function.

`findings.known_cause_kinds` has what is said of each, and docs/measures.md#known-causes its evidence.
"""

from collections.abc import Callable, Mapping
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName

from fleetprof_analyzer.rank.causes.collector import find_collector
from fleetprof_analyzer.rank.causes.compilation import find_compilations
from fleetprof_analyzer.rank.causes.evaluation import find_evaluation
from fleetprof_analyzer.rank.causes.few_cores import find_few_cores
from fleetprof_analyzer.rank.causes.gradient_reductions import find_repeated_reductions
from fleetprof_analyzer.rank.causes.known_code import LOGS, SAVES, WORKERS_START
from fleetprof_analyzer.rank.causes.pauses import in_pauses
from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.small_collectives import find_small_collectives
from fleetprof_analyzer.rank.causes.stacks import in_stacks
from fleetprof_analyzer.rank.causes.unused_parameters import find_unused_parameters

CAUSES: Final[Mapping[KnownCauseName, Callable[[RankView], KnownCause | None]]] = {
    "garbage_collection": find_collector,
    "repeated_reduction": find_repeated_reductions,
    "small_collectives": find_small_collectives,
    "unused_parameters": find_unused_parameters,
    "few_cores": find_few_cores,
    "compilation": find_compilations,
    "workers_started": in_pauses("workers_started", WORKERS_START),
    "checkpoint": in_pauses("checkpoint", SAVES),
    "evaluation": find_evaluation,
    "logging": in_stacks("logging", LOGS),
}


def find_known_causes(view: RankView) -> list[KnownCause]:
    """The causes that are proven on one rank, the most time first."""
    found = [cause for find in CAUSES.values() if (cause := find(view)) is not None and cause.time_ns > 0]
    return sorted(found, key=lambda cause: (-cause.time_ns, cause.cause))
