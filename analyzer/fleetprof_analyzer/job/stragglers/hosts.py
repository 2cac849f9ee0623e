"""On which host each rank ran, and which hosts are late as a whole.

Guarantees: pure; of ranks whose hosts are not all known, or that share one host, nothing is said.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from fleetprof_api.ledger import LedgerEntry
from fleetprof_api.report.report import Rank
from fleetprof_api.report.stragglers import Cause, LateHost, Straggler, Stragglers

from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.job.stragglers.thresholds import MOST, SEVERAL

_OF_RANKS: Final = ("straggler", "slow_link")
"""Verdicts that blame the ranks which they name; a heavy stage has more to do, wherever it runs."""


def name_hosts(ranks: Sequence[Rank], ledger: Sequence[LedgerEntry]) -> dict[int, str]:
    """Rank -> its node by Kubernetes' word, else its machine's own name; one kind of name for all, else none."""
    numbered = {rank.rank: rank for rank in ranks if rank.rank is not None}
    of_ledger = {entry.rank: entry.node_name for entry in ledger}
    nodes = {number: rank.node_name or of_ledger.get(number, "") for number, rank in numbered.items()}
    machines = {number: rank.host_name for number, rank in numbered.items()}
    return next((names for names in (nodes, machines) if all(names.values())), {})


def add_hosts(judged: Judgement, hosts: Mapping[int, str]) -> Judgement:
    """With the hosts of the ranks that it names, and with the hosts that are late as a whole."""
    if len(set(hosts.values())) < 2:
        return judged
    found = judged.section

    def placed(ranks: Sequence[Straggler]) -> list[Straggler]:
        return [msgspec.structs.replace(one, host=hosts.get(one.rank, "")) for one in ranks]

    named = msgspec.structs.replace(found, ranks=placed(found.ranks), order=placed(found.order))
    return replace(judged, section=msgspec.structs.replace(named, hosts=_find_late(named, hosts)))


def _find_late(found: Stragglers, hosts: Mapping[int, str]) -> list[LateHost]:
    """The host of the latest rank first."""
    if found.verdict not in _OF_RANKS:
        return []
    captured = Counter(hosts.values())
    late: dict[str, list[Straggler]] = {}
    for one in found.ranks:
        late.setdefault(one.host, []).append(one)
    whole = {
        host: ranks for host, ranks in late.items()
        if host and len(ranks) >= max(SEVERAL, MOST * captured[host])
    }  # fmt: skip
    others = len(captured) - len(whole)
    if not others:
        return []
    return [
        LateHost(
            name=host,
            ranks=sorted(one.rank for one in ranks),
            captured=captured[host],
            others=others,
            cause=_common_cause(ranks),
            gain_alone=max(one.gain_alone for one in ranks),
        )
        for host, ranks in whole.items()
    ]


def _common_cause(ranks: Sequence[Straggler]) -> Cause:
    """That of nearly all of them, else several."""
    cause, count = Counter(one.cause for one in ranks).most_common(1)[0]
    return cause if count >= MOST * len(ranks) else "mixed"
