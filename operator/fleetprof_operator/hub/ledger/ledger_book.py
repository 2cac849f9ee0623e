"""One request's ledger and what follows from it: each rank's line, the conditions, the outcome.

Guarantees: pure, time is passed in; a rank's line only moves forward whatever order events come in; every rank that is
not uploaded ends with a reason and a sentence; the conditions can be derived anew from a ledger that was read back.
`Succeeded` carries the state of the request in its reason, there is no phase (docs/design.md#a-request):

    Unknown  Waiting, Capturing, Uploading, Analyzing
    True     Complete; PartiallyCaptured (some ranks failed, the others are in the store and analysed; or all are, and
             did not begin with one step, though they were told to)
    False    NothingMatched, PodsPending, SidecarsMissing, NotInjected, NothingSpeaksKineto, NoOptimizerStep,
             RanksMissing, AmbiguousTarget, AlreadyCapturing, BeyondBounds, CanaryHarmed, CanaryFailed,
             CanaryImpossible, NoMemory, AllRanksFailed, Cancelled, DeadlineExceeded, AnalysisFailed, Internal
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Condition, Ledger, LedgerEntry, RankState, Reason, merge_entries

from fleetprof_operator.hub.ledger.lines import Lines
from fleetprof_operator.hub.ledger.messages import to_entry
from fleetprof_operator.hub.planning.plan import Plan
from fleetprof_operator.hub.planning.resolution import RankTarget


class LedgerBook:
    """Keeps one request's ledger. `ledger` is what is written to the store, `lines` are its lines to be read."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lines = Lines(ledger)
        self._analyzing = False
        self._stale_since_unix_ns = 0  # lines changed then, conditions not yet

    # ------------------------------------------------------------ lines

    def ask(
        self, targets: Sequence[RankTarget], plan: Plan, note: str, now_unix_ns: int, absent: Sequence[int] = ()
    ) -> None:
        """Opens a line for every rank and notes the plan, in place of an earlier one that came to nothing.

        Ranks that do not poll, or are not seen, fail at once.
        """
        self.withdraw_plan()
        self.ledger.plans += 1
        opened = [
            LedgerEntry(
                rank=rank,
                process_id="",
                state=RankState.FAILED,
                reason=Reason.NOT_POLLING,
                message="no process of this rank was seen: it is without a sidecar, or without KINETO_USE_DAEMON=1",
                asked_unix_ns=now_unix_ns,
                failed_unix_ns=now_unix_ns,
            )
            for rank in absent
        ]
        for target in targets:
            entry = LedgerEntry(
                rank=target.rank,
                process_id=target.process.process_id,
                sidecar_id=target.sidecar_id,
                pod_name=target.pod_name,
                pod_uid=target.pod_uid,
                node_name=target.node_name,
                pid=target.process.pid,
                rank_source=target.rank_source,
                asked_unix_ns=now_unix_ns,
            )
            opened.append(entry)
            if not target.process.polls_kineto:
                entry.state, entry.reason, entry.failed_unix_ns = RankState.FAILED, Reason.NOT_POLLING, now_unix_ns
                entry.message = (
                    "the process does not ask for Kineto configs: it was started without KINETO_USE_DAEMON=1"
                )
        self.lines.add(opened)
        self.lines.settle()
        ledger = self.ledger
        ledger.start_mode = plan.mode
        ledger.first_step = plan.first_step
        ledger.start_unix_ns = plan.start_unix_ns if plan.mode == "time" else None
        ledger.duration_ns = plan.duration_ns
        ledger.deliver_until_unix_ns = plan.deliver_until_unix_ns
        ledger.armed_unix_ns = now_unix_ns
        nodes = len({target.node_name or target.sidecar_id for target in targets})
        text = f"{_count(len(targets), 'rank')} on {_count(nodes, 'node')}; {plan.explanation}"
        self._set("TargetsResolved", "True", "Resolved", f"{text}; {note}" if note else text, now_unix_ns)
        self._stale_since_unix_ns = now_unix_ns

    def withdraw_plan(self) -> None:
        """Forgets lines and plan of an order that no sidecar ever took."""
        self.lines.clear()
        ledger = self.ledger
        ledger.start_mode, ledger.first_step, ledger.start_unix_ns = "", None, None
        ledger.duration_ns = ledger.deliver_until_unix_ns = ledger.armed_unix_ns = 0

    def adopt(self, event: pb.CaptureEvent, sidecar_id: str, identity: pb.Identity, now_unix_ns: int) -> None:
        """Opens a line that this ledger has lost, from what a sidecar restates."""
        entry = LedgerEntry(
            rank=event.rank,
            process_id=event.process_id,
            sidecar_id=sidecar_id,
            pod_name=identity.pod_name,
            pod_uid=identity.pod_uid,
            node_name=identity.node_name or identity.host_name,
        )
        self.lines.add([entry])
        if not self.ledger.armed_unix_ns:
            self.ledger.armed_unix_ns = event.asked_unix_ns or now_unix_ns
        self._set("TargetsResolved", "True", "Resolved", "rebuilt from what the sidecars hold", now_unix_ns)
        self.apply(event, sidecar_id, now_unix_ns)

    def apply(self, event: pb.CaptureEvent, sidecar_id: str, now_unix_ns: int) -> bool:
        """Merges what a sidecar says into its rank's line. False when nothing changed."""
        known = self.lines.find(sidecar_id, event.process_id)
        if known is None or known.rank != event.rank:
            return False
        return self._merge(known, to_entry(event, known), now_unix_ns)

    def mark_uploaded(self, entry: LedgerEntry, message: str, now_unix_ns: int) -> None:
        """The store holds this rank's trace."""
        done = msgspec.structs.replace(
            entry, state=RankState.UPLOADED, reason=None, message=message, uploaded_unix_ns=now_unix_ns
        )
        self._merge(entry, done, now_unix_ns)

    def fail(self, entry: LedgerEntry, reason: Reason, message: str, now_unix_ns: int) -> None:
        """This rank ends without a trace in the store."""
        failed = msgspec.structs.replace(
            entry, state=RankState.FAILED, reason=reason, message=message, failed_unix_ns=now_unix_ns
        )
        self._merge(entry, failed, now_unix_ns)

    # ------------------------------------------------------------ conditions

    def wait_for(self, reason: str, message: str, now_unix_ns: int) -> bool:
        """The target is not there yet. False when that was known."""
        changed = self._set("TargetsResolved", "False", reason, message, now_unix_ns)
        return self._set("Succeeded", "Unknown", "Waiting", message, now_unix_ns) or changed

    def begin_analysis(self, now_unix_ns: int) -> None:
        """All lines are final, the report is being made."""
        self._analyzing = True
        self._stale_since_unix_ns = now_unix_ns

    def end_analysis(self, status: str, reason: str, message: str, now_unix_ns: int) -> None:
        """The report is there ("True"), could not be made ("False"), or is nobody's to make ("Unknown")."""
        self._analyzing = False
        self._set("Analyzed", status, reason, message, now_unix_ns)

    def derive(self) -> None:
        """Brings the conditions in line with the lines; to be called before they are shown or written.

        Not at every event: with ten thousand ranks that would be the hub's main work.
        """
        self.lines.settle()
        now_unix_ns, self._stale_since_unix_ns = self._stale_since_unix_ns, 0
        if self.ledger.outcome or not self.ledger.entries or not now_unix_ns:
            return
        lines = self.lines
        beyond, uploaded, open_upload = lines.count_written(), lines.count(RankState.UPLOADED), lines.open_count
        open_capture = open_upload - lines.count(RankState.WRITTEN)
        failed = _count_reasons(lines.failures())
        count = _count(len(self.ledger.entries), "rank")
        self._derive_one("Captured", open_capture, beyond, "Capturing", failed, count, now_unix_ns)
        stage = "Uploading" if not open_capture else "Capturing"
        self._derive_one("Uploaded", open_upload, uploaded, stage, failed, count, now_unix_ns)
        if self._analyzing:
            self._set("Analyzed", "Unknown", "Analyzing", "", now_unix_ns)
        state = "Capturing" if open_capture else "Uploading" if open_upload else "Analyzing"
        done = uploaded if state != "Capturing" else beyond
        word = "uploaded" if state != "Capturing" else "captured"
        said = f"{done} of {count} {word}" + (f"; failed: {failed}" if failed else "")
        self._set("Succeeded", "Unknown", state, said, now_unix_ns)

    def conclude(self, status: str, reason: str, message: str, now_unix_ns: int) -> None:
        """Ends the request."""
        if self.ledger.outcome:
            return
        self.derive()
        if not self.ledger.entries and self._get("TargetsResolved") is None:
            self._set("TargetsResolved", "False", reason, message, now_unix_ns)
        for kind in ("Captured", "Uploaded", "Analyzed"):
            condition = self._get(kind)
            if condition is None or (condition.status == "Unknown" and condition.reason != "NoAnalyzer"):
                self._set(kind, "False", reason, "", now_unix_ns)
        self._set("Succeeded", status, reason, message, now_unix_ns)
        self.ledger.outcome = reason
        self.ledger.message = message
        self.ledger.completed_unix_ns = now_unix_ns

    # ------------------------------------------------------------ inside

    def _merge(self, known: LedgerEntry, told: LedgerEntry, now_unix_ns: int) -> bool:
        merged = merge_entries(known, told)
        if merged == known:
            return False
        self.lines.replace(known, merged)
        self._stale_since_unix_ns = now_unix_ns
        return True

    def _get(self, kind: str) -> Condition | None:
        return next((c for c in self.ledger.conditions if c.type == kind), None)

    def _set(self, kind: str, status: str, reason: str, message: str, now_unix_ns: int) -> bool:
        known = self._get(kind)
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return False
        since = known.transition_unix_ns if known is not None and known.status == status else now_unix_ns
        fresh = Condition(type=kind, status=status, reason=reason, message=message, transition_unix_ns=since)
        order = ("TargetsResolved", "Captured", "Uploaded", "Analyzed", "Succeeded")
        others = [c for c in self.ledger.conditions if c.type != kind]
        self.ledger.conditions = sorted([*others, fresh], key=lambda c: order.index(c.type))
        return True

    def _derive_one(
        self,
        kind: str,
        still_open: int,
        done: int,
        stage: str,
        failed: str,
        count: str,
        now_unix_ns: int,
    ) -> None:
        said = f"{done} of {count}" + (f"; failed: {failed}" if failed else "")
        if still_open:
            self._set(kind, "Unknown", stage, said, now_unix_ns)
        elif not done:
            self._set(kind, "False", "AllRanksFailed", said, now_unix_ns)
        else:
            whole = done == len(self.ledger.entries)
            self._set(kind, "True", f"All{kind}" if whole else f"Partially{kind}", said, now_unix_ns)


def summarize_failures(entries: Iterable[LedgerEntry]) -> str:
    """The reasons of the failed ranks, counted: `2 TooLate, 1 ProcessExited`."""
    return _count_reasons(Counter(e.reason or Reason.INTERNAL for e in entries if e.state is RankState.FAILED))


def _count_reasons(reasons: Mapping[Reason, int]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items(), key=lambda r: (-r[1], r[0])))


def decide_outcome(ledger: Ledger, deadline_passed: bool, difference: str = "") -> tuple[str, str, str]:
    """(status, reason, message) of Succeeded once every line is final and, where there is one, the report is made.

    `difference`: what keeps the ranks' iterations from being the same, though all are stored.
    """
    entries = ledger.entries
    uploaded = sum(e.state is RankState.UPLOADED for e in entries)
    said = f"{uploaded} of {_count(len(entries), 'rank')} captured"
    if failed := summarize_failures(entries):
        said += f"; failed: {failed}"
    if ledger.cancelled_unix_ns:
        return "False", "Cancelled", f"cancelled by the user; {said}"
    if not uploaded:
        first = next((e for e in entries if e.message), None)
        detail = f". Rank {first.rank}: {first.message}" if first is not None else ""
        return "False", "DeadlineExceeded" if deadline_passed else "AllRanksFailed", said + detail
    whole = uploaded == len(entries) and not difference
    return "True", "Complete" if whole else "PartiallyCaptured", f"{said}; {difference}" if difference else said


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
