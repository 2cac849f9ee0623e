"""The report in the few values that a ProfileRequest's status has room for.

Guarantees: pure; of GPU ranks where there are any; a value that the report does not have is left out.
"""

import msgspec
from fleetprof_api.report import KindTotal

from fleetprof_operator.requests.cluster import Json


class _Totals(msgspec.Struct):
    """The part of report.json that is read: a report of ten thousand ranks is not held whole."""

    totals: list[KindTotal] = []


def read_headline(report_json: bytes) -> Json:
    """`status.headline` from report.json's bytes; empty when they are no report."""
    try:
        totals = msgspec.json.decode(report_json, type=_Totals).totals
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    chosen = next((t for t in totals if t.kind == "gpu"), next(iter(totals), None))
    if chosen is None or chosen.time_ns.span <= 0:
        return {}
    time = chosen.time_ns
    return {
        "busyPermille": _permille(time.span - time.idle, time.span),
        "exposedCommunicationPermille": _permille(time.exposed_communication, time.span),
    }


def _permille(part: int, whole: int) -> int:
    return min(1000, max(0, round(1000 * part / whole)))
