"""A verdict over all ranks before its sentences.

Guarantees: frozen; `section` is the report's, without its `reason` and `unidentifiable`, which are made of the rest.
"""

from dataclasses import dataclass, field

from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.job.stragglers.judgement.reasons import Reason
from fleetprof_analyzer.job.stragglers.judgement.untold import Untold


@dataclass(frozen=True, slots=True)
class Judgement:
    """The numbers of the verdict, why it is as it is, and what it cannot tell.

    `loading_gain`: the share of the iteration that all data loading costs, where no rank is named; else 0.
    """

    section: Stragglers
    reason: Reason
    untold: list[Untold] = field(default_factory=list)
    loading_gain: float = 0.0
