"""All guards of sentences about lost time, of which docs/measures.md has a table.

Guarantees: each is there once; tests hold each to the code.
"""

from typing import Final

from fleetprof_analyzer.findings.held_up import HELD_UP
from fleetprof_analyzer.findings.registry import RULES
from fleetprof_analyzer.job.device_waits import WAITS_ON_DEVICE
from fleetprof_analyzer.views.answer.guards import HEADLINE

GUARDS: Final = tuple(
    dict.fromkeys([*(guard for rule in RULES for guard in rule.guards), HELD_UP, WAITS_ON_DEVICE, *HEADLINE])
)
