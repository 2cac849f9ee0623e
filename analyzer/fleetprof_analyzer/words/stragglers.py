"""The section `stragglers` of a report with its sentences: the reason of the verdict, and what it cannot tell.

Guarantees: pure; made of the verdict's facts alone.
"""

import msgspec
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.job.stragglers.judgement.reasons import LateRanks, SlowLinks
from fleetprof_analyzer.words.ranks import find_rest, is_slower_of_two, name_hosts, name_stragglers
from fleetprof_analyzer.words.untold import say_untold
from fleetprof_analyzer.words.verdict_reasons import say_late, say_reason


def say_stragglers(found: Judgement) -> Stragglers:
    """The section as the report has it."""
    return msgspec.structs.replace(
        found.section, reason=_say_reason(found), unidentifiable=[say_untold(one) for one in found.untold]
    )


def _say_reason(found: Judgement) -> str:
    """The reason; hosts that are late as a whole come before ranks that are late by themselves."""
    section = found.section
    if isinstance(found.reason, LateRanks) and section.hosts:
        rest = find_rest(section)
        more = f", and then for {name_stragglers(rest)}" if rest else ""
        doubt = "; only one other node does the same work, so this is the slower of two"
        return f"the others wait for {name_hosts(section.hosts)}{more}{doubt if is_slower_of_two(section) else ''}"
    if isinstance(found.reason, LateRanks) and len(section.ranks) == 1:
        return say_late(name_stragglers(section.ranks), found.reason)
    if isinstance(found.reason, SlowLinks) and section.hosts:
        return f"{say_reason(found.reason)}: all on {name_hosts(section.hosts)}"
    return say_reason(found.reason)
