"""The report in the few values that a ProfileRequest's status has room for, and where it is.

Guarantees: pure; of GPU ranks where there are any; a value that the report does not have is left out.
"""

from typing import Final

import msgspec
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import KindTotal
from fleetprof_api.report.stragglers import Stragglers
from fleetprof_api.request import Headline
from fleetprof_api.request.fields import longest

from fleetprof_operator.kubernetes.cluster import Json

_STRAGGLER: Final = longest(Headline, "straggler")
_FINDING: Final = longest(Headline, "top_finding")


class _Essence(msgspec.Struct):
    """The part of report.json that is read: a report of ten thousand ranks is not held whole."""

    totals: list[KindTotal] = []
    findings: list[Finding] = []
    stragglers: Stragglers | None = None


def read_headline(report_json: bytes) -> Json:
    """`status.headline` from report.json's bytes; empty when they are no report."""
    try:
        essence = msgspec.json.decode(report_json, type=_Essence)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return _read_shares(essence.totals) | _read_stragglers(essence.stragglers) | _read_finding(essence.findings)


def say_first(sentence: str) -> Json:
    """`status.headline` of a request whose result is a sentence."""
    return {"topFinding": sentence[:_FINDING]}


def find_page(template: str, stored: str, metadata: Json) -> str:
    """`status.reportURL`: the web UI's page, made from `template`; without one where it is `stored`."""
    if not template:
        return stored
    return template.format(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])


def _read_shares(totals: list[KindTotal]) -> Json:
    chosen = next((t for t in totals if t.kind == "gpu"), next(iter(totals), None))
    if chosen is None or chosen.time_ns.span <= 0:
        return {}
    time = chosen.time_ns
    return {
        "busyPermille": _permille(time.span - time.idle - time.unrecorded, time.span),
        "exposedCommunicationPermille": _permille(time.exposed_communication, time.span),
    }


def _read_stragglers(found: Stragglers | None) -> Json:
    if found is None or found.verdict == "not_judged":
        return {}
    headline: Json = {"topFinding": found.reason[:_FINDING]} if found.reason else {}
    if found.ranks:
        worst = found.ranks[0]
        headline["straggler"] = f"{worst.rank} ({worst.cause.replace('_', ' ')})"[:_STRAGGLER]
    return headline


def _read_finding(findings: list[Finding]) -> Json:
    """The finding that is worth the most; it goes before the stragglers' verdict, which may be that nobody is late."""
    if not findings:
        return {}
    first = findings[0]
    return {"topFinding": f"{first.message}: potential saving {first.gain_permille / 10:.1f} % of the time"[:_FINDING]}


def _permille(part: int, whole: int) -> int:
    return min(1000, max(0, round(1000 * part / whole)))
