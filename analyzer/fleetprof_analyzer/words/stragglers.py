"""The section `stragglers` of a report with its sentences: the reason of the verdict, and what it cannot tell.

Guarantees: pure; made of the verdict's facts alone.
"""

import msgspec
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.words.untold import say_untold
from fleetprof_analyzer.words.verdict_reasons import say_reason


def say_stragglers(found: Judgement) -> Stragglers:
    """The section as the report has it."""
    return msgspec.structs.replace(
        found.section, reason=say_reason(found.reason), unidentifiable=[say_untold(one) for one in found.untold]
    )
