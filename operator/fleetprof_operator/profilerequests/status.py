"""The status of a ProfileRequest, made of what the hub says of its capture, and the patch that brings it about.

Guarantees: pure, time is passed in; counts and a few examples, never every rank; `lastTransitionTime` moves only when a
condition's status does; all conditions are there from the first write on; `observedGeneration` is in every write; every
text and list keeps to the CRD's bounds. Ready and Stalled say what Succeeded does to tools that know no ProfileRequest
(kstatus: Flux; Argo CD): a request that failed is Stalled, and one that goes on is not Ready yet.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import FailedRanks, Status
from fleetprof_api.request.fields import longest

from fleetprof_operator.hub.ledger.outcome import say_not_done
from fleetprof_operator.kubernetes.cluster import Json

TYPES: Final = ("TargetsResolved", "Captured", "Uploaded", "Analyzed", "Succeeded")
SUMMARY: Final = ("Ready", "Stalled")
"""Made of Succeeded alone, after it."""
_MESSAGE: Final = 2000
_TARGET: Final = longest(Status, "target")
_FAILURES: Final = longest(Status, "failures")
_FAILED_RANKS: Final = longest(FailedRanks, "first_ranks")
_FAILURE_MESSAGE: Final = longest(FailedRanks, "message")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of one condition: status True, False or Unknown; a CamelCase reason; a sentence."""

    status: str
    reason: str
    message: str = ""


_NOT_BEGUN: Final = Fact("Unknown", "Waiting", "not begun")


def from_capture(capture: pb.CaptureStatus) -> Json:
    """Conditions (without times), counts and start as the hub has them. The end is not told: see `finish`."""
    facts = {c.type: Fact(c.status, c.reason, c.message) for c in capture.conditions}
    if not capture.finished and "Succeeded" in facts and facts["Succeeded"].status != "Unknown":
        facts["Succeeded"] = Fact("Unknown", "Finishing", facts["Succeeded"].message)
    status: Json = {"facts": facts}
    if capture.queue_position and not capture.finished:
        status["queuePosition"] = capture.queue_position
    if capture.ranks:
        status["ranks"] = count_ranks(capture.ranks)
        if failures := list_failures(capture.ranks):
            status["failures"] = failures
        armed = [event.armed_unix_ns for event in capture.ranks if event.armed_unix_ns]
        if armed:
            status["startTime"] = format_time(min(armed))
    return status


def count_ranks(events: Iterable[pb.CaptureEvent]) -> dict[str, int]:
    """The number of ranks by state."""
    counts = Counter[str](targeted=0, armed=0, captured=0, uploaded=0, failed=0)
    for event in events:
        counts["targeted"] += 1
        counts["armed"] += bool(event.armed_unix_ns)
        counts["captured"] += event.state in (pb.WRITTEN, pb.UPLOADED)
        counts["uploaded"] += event.state == pb.UPLOADED
        counts["failed"] += event.state == pb.FAILED
    return dict(counts)


def list_failures(events: Iterable[pb.CaptureEvent]) -> list[Json]:
    """The reasons why ranks failed, the most frequent first, each with its first ranks and the first one's sentence."""
    by_reason: dict[str, list[pb.CaptureEvent]] = {}
    for event in events:
        if event.state == pb.FAILED:
            by_reason.setdefault(event.reason or "Unknown", []).append(event)
    listed: list[Json] = []
    for reason, failed in sorted(by_reason.items(), key=lambda each: (-len(each[1]), each[0]))[:_FAILURES]:
        failed.sort(key=lambda event: event.rank)
        # A rank that was restarted has a line of the ledger for each of its processes.
        ranks = sorted({event.rank for event in failed})
        failure: Json = {"reason": reason, "ranks": len(ranks), "firstRanks": ranks[:_FAILED_RANKS]}
        if failed[0].message:
            failure["message"] = _cut(failed[0].message, _FAILURE_MESSAGE)
        listed.append(failure)
    return listed


def merge_conditions(known: Sequence[Json], facts: Mapping[str, Fact], generation: int, now_unix_ns: int) -> list[Json]:
    """The conditions to write. A type of ours that no fact is about stays as it was, or is Unknown."""
    before = {c["type"]: c for c in known}
    merged = [c for c in known if c["type"] not in (*TYPES, *SUMMARY)]  # somebody else's
    stays = {kind: Fact(old["status"], old["reason"], old["message"]) for kind, old in before.items()}
    complete = {kind: facts.get(kind, stays.get(kind, _NOT_BEGUN)) for kind in TYPES}
    for kind, fact in (complete | _summarize(complete["Succeeded"])).items():
        old = before.get(kind)
        same = old is not None and old["status"] == fact.status
        merged.append(
            {
                "type": kind,
                "status": fact.status,
                "reason": fact.reason or "Unknown",
                "message": _cut(fact.message, _MESSAGE),
                "observedGeneration": generation,
                "lastTransitionTime": old["lastTransitionTime"] if old and same else format_time(now_unix_ns),
            }
        )
    return merged


def build_status(known: Json, wanted: Json, *, target: str, generation: int, now_unix_ns: int) -> Json:
    """The whole status to write: `wanted` has `facts` and any other fields of the status; others stay as `known`.

    But for the place in the queue, which is true for the moment only.
    """
    lasting = {name: value for name, value in known.items() if name != "queuePosition"}
    status = {**lasting, **{name: value for name, value in wanted.items() if name != "facts"}}
    status["conditions"] = merge_conditions(known.get("conditions") or [], wanted["facts"], generation, now_unix_ns)
    status["target"] = _cut(target, _TARGET)
    status["observedGeneration"] = generation
    return status


def finish(wanted: Json, now_unix_ns: int) -> Json:
    """`wanted` as that of a request that has ended: no condition stays Unknown for want of an end."""
    facts = dict(wanted["facts"])
    end = facts["Succeeded"]
    for kind in TYPES:
        if kind not in facts:
            facts[kind] = Fact("False", end.reason, say_not_done(end.reason))
    return {**wanted, "facts": facts, "completionTime": format_time(now_unix_ns)}


def is_finished(status: Mapping[str, object] | None) -> bool:
    """Tells whether a request with this status has ended."""
    return bool((status or {}).get("completionTime"))


def find_state(status: Mapping[str, object] | None) -> str:
    """The reason of Succeeded, which tells the state; empty before the first write."""
    conditions = (status or {}).get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if condition.get("type") == "Succeeded":
            return str(condition.get("reason") or "")
    return ""


def differ_much(known: Json, status: Json) -> bool:
    """Tells if a condition's status or reason is new, which is to be seen at once; counts and sentences can wait."""
    return _marks(known) != _marks(status) or is_finished(known) != is_finished(status)


def format_time(unix_ns: int) -> str:
    """RFC 3339 in UTC, whole seconds, as metav1.Time."""
    return datetime.fromtimestamp(unix_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> int:
    """Unix nanoseconds of a metav1.Time. Raises ValueError."""
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


def _summarize(end: Fact) -> dict[str, Fact]:
    failed = end.status == "False"
    stalled = Fact("True", end.reason, end.message) if failed else Fact("False", end.reason, "nothing has failed")
    return dict(zip(SUMMARY, (end, stalled), strict=True))


def _marks(status: Json) -> list[tuple[str, str, str]]:
    return [(c["type"], c["status"], c["reason"]) for c in status.get("conditions") or []]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
