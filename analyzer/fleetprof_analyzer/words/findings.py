"""A finding as a sentence: what it is, on which ranks, and where in the code.

Guarantees: short and printable, whatever a trace says.
"""

import re
from typing import Final

from fleetprof_api.report.findings import Finding

from fleetprof_analyzer.words.code import in_brackets
from fleetprof_analyzer.words.ranks import name_ranks
from fleetprof_analyzer.words.text import plain

_BETWEEN: Final = re.compile(r", (?:most|\d+ %) of it ")


def say_briefly(finding: Finding) -> str:
    """`the GPU waits for the next batch (train.py:41 read_batch)`: without the operators around it, as a clause."""
    message = _BETWEEN.split(plain(finding.message, 300))[0]
    # A first word in capitals is a name.
    first = message[:2].lower() if message[1:2].islower() else message[:2]
    return f"{first}{message[2:]}{in_brackets(finding.place)}"


def say_finding(finding: Finding) -> str:
    """`the GPU waits for the next batch, most on rank 4 (train.py:41 read_batch)`."""
    message = plain(finding.message, 300)
    who = name_ranks(finding.ranks) if finding.ranks else ""
    # A message that names its rank says it once.
    ranks = f", most on {who}" if who and who not in message else ""
    place = in_brackets(finding.place)
    shown = [plain(name, 60) for name in finding.names[:3]]
    if finding.kind == "exposed_communication":
        shown = [name.replace("_", "-") for name in shown]
    shown = [name for name in shown if name not in message]
    names = f": {', '.join(shown)}" if shown else ""
    return f"{message[:1].upper()}{message[1:]}{ranks}{place}{names}"
