"""One request's ledger and what follows from it: each rank's line, the canary's, the conditions, the outcome.

A ledger has one writer, its `LedgerBook`, with parts of its own (`lines`, `canary_line`, `conditions`). All others ask
the book to write, and read through `ledger_view`.

Guarantees: pure, time is passed in; a rank's line only moves forward whatever order events come in; every rank that is
not uploaded ends with a reason and a sentence; the conditions can be derived anew from a ledger that was read back.
`Succeeded` carries the state of the request in its reason, there is no phase (docs/architecture.md#a-request):

    Unknown  Waiting, Capturing, Uploading, Analyzing
    True     Complete; PartiallyCaptured (some ranks failed, the others are in the store and analysed; or all are, and
             did not begin with one step, though they were told to)
    False    NothingMatched, PodsPending, SidecarsMissing, NotInjected, NothingSpeaksKineto, NoOptimizerStep,
             RanksMissing, AmbiguousTarget, ClocksDiffer, AlreadyCapturing, BeyondBounds, CanaryHarmed,
             CanaryFailed, CanaryImpossible, NoMemory, AllRanksFailed, Cancelled, DeadlineExceeded,
             AnalysisFailed, Internal
"""

from collections.abc import Callable, Sequence

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canceller, Ledger, LedgerEntry, RankState, Reason, RecordingEstimate, merge_entries
from fleetprof_api.request import Spec

from fleetprof_operator.hub.ledger.canary_line import CanaryLine
from fleetprof_operator.hub.ledger.conditions import Conditions
from fleetprof_operator.hub.ledger.ledger_view import LedgerView
from fleetprof_operator.hub.ledger.line_forms import LineForms
from fleetprof_operator.hub.ledger.lines import Lines, fail_line, open_line
from fleetprof_operator.hub.ledger.messages import to_entry, to_status
from fleetprof_operator.hub.ledger.outcome import count_noun, count_reasons, say_not_done
from fleetprof_operator.hub.planning.orders import build_arm
from fleetprof_operator.hub.planning.plan import Plan
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.settings import HubSettings


class LedgerBook:
    """Takes one request's ledger over: whoever made it keeps no reference.

    `ledger` is all of it, to be read; `lines` and `canary` are its lines; `forms` are they as written and shown.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.ledger: LedgerView = ledger
        self.lines = Lines(ledger)
        self.canary = CanaryLine(ledger)
        self.forms = LineForms(ledger)
        self._conditions = Conditions(ledger)
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
        self._ledger.plans += 1
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
            entry = open_line(target, now_unix_ns)
            if not target.process.polls_kineto:
                message = "the process does not ask for Kineto configs: it was started without KINETO_USE_DAEMON=1"
                entry = fail_line(entry, Reason.NOT_POLLING, message, now_unix_ns)
            opened.append(entry)
        self.lines.add(opened)
        self.lines.settle()
        ledger = self._ledger
        ledger.start_mode = plan.mode
        ledger.first_step = plan.first_step
        ledger.start_unix_ns = plan.start_unix_ns if plan.mode == "time" else None
        ledger.duration_ns = plan.duration_ns
        ledger.deliver_until_unix_ns = plan.deliver_until_unix_ns
        ledger.armed_unix_ns = now_unix_ns
        ledger.labels = _find_shared_labels(targets)
        nodes = len({target.node_name or target.sidecar_id for target in targets})
        text = f"{count_noun(len(targets), 'rank')} on {count_noun(nodes, 'node')}; {plan.explanation}"
        self._conditions.set("TargetsResolved", "True", "Resolved", f"{text}; {note}" if note else text, now_unix_ns)
        self._stale_since_unix_ns = now_unix_ns

    def withdraw_plan(self) -> None:
        """Forgets lines and plan of an order that no sidecar ever took."""
        self.lines.clear()
        ledger = self._ledger
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
        if not self._ledger.armed_unix_ns:
            self._ledger.armed_unix_ns = event.asked_unix_ns or now_unix_ns
        self._conditions.set("TargetsResolved", "True", "Resolved", "rebuilt from what the sidecars hold", now_unix_ns)
        self.apply(event, sidecar_id, now_unix_ns)

    def apply(self, event: pb.CaptureEvent, sidecar_id: str, now_unix_ns: int) -> bool:
        """Merges what a sidecar says into its rank's line. False when nothing changed."""
        known = self.lines.find(sidecar_id, event.process_id)
        if known is None or known.rank != event.rank:
            return False
        return self._merge(known, to_entry(event, known), now_unix_ns)

    def mark_uploaded(self, entry: LedgerEntry, message: str, now_unix_ns: int) -> None:
        """The store holds this rank's trace."""
        uploaded_entry = msgspec.structs.replace(
            entry, state=RankState.UPLOADED, reason=None, message=message, uploaded_unix_ns=now_unix_ns
        )
        self._merge(entry, uploaded_entry, now_unix_ns)

    def fail(self, entry: LedgerEntry, reason: Reason, message: str, now_unix_ns: int) -> None:
        """This rank ends without a trace in the store."""
        self._merge(entry, fail_line(entry, reason, message, now_unix_ns), now_unix_ns)

    # ------------------------------------------------------------ the request

    def find_for_upload(self, sidecar_id: str, process_id: str) -> LedgerEntry | str:
        """The line of a process that may upload, or the sentence why it may not."""
        entry = self.lines.find(sidecar_id, process_id)
        if entry is None:
            return "this process is not part of the capture"
        if self._ledger.outcome:
            return f"the capture has ended: {self._ledger.outcome}"
        if self._ledger.cancelled_unix_ns:
            return "the capture was cancelled; its traces are discarded"
        return entry

    def name_requester(self, requester: str) -> None:
        """Notes who asked; the first name stands."""
        self._ledger.requester = self._ledger.requester or requester

    def note_estimate(self, estimate: RecordingEstimate | None) -> None:
        """Notes the cost that is known before ranks are asked."""
        self._ledger.estimate = estimate

    def note_iterations(self, iterations: int) -> None:
        """Notes the length of the window where it is shorter than asked; 0: it is as asked."""
        self._ledger.iterations = iterations

    def cancel(self, now_unix_ns: int, by: Canceller = Canceller.USER) -> bool:
        """Somebody takes the request back. False when that is known, or the request has ended."""
        if self._ledger.outcome or self._ledger.cancelled_unix_ns:
            return False
        self._ledger.cancelled_unix_ns = now_unix_ns
        self._ledger.cancelled_by = by
        return True

    # ------------------------------------------------------------ messages and bytes

    def build_order(
        self, spec: Spec, entries: Sequence[LedgerEntry], give_up_unix_ns: int, settings: HubSettings
    ) -> pb.HubMessage:
        """The order for one sidecar's ranks; `entries` are their lines."""
        return build_arm(self._ledger, spec, entries, give_up_unix_ns, settings)

    def to_status(self, *, target: str, request_json: str, finished: bool, report_location: str) -> pb.CaptureStatus:
        """The ledger as people see it. Until the end, lines that did not change are not made anew."""
        self.derive()
        status = to_status(
            self._ledger,
            target=target,
            request_json=request_json,
            finished=finished,
            report_location=report_location,
            with_ranks=finished,
        )
        return status if finished else self.forms.show(status)

    def snapshot(self) -> Callable[[], bytes]:
        """A function that makes the ledger as it is now into JSON: for a thread, one at a time."""
        self.derive()
        return self.forms.snapshot()

    # ------------------------------------------------------------ conditions

    def wait_for(self, reason: str, message: str, now_unix_ns: int) -> bool:
        """The target is not there yet. False when that was known."""
        changed = self._conditions.set("TargetsResolved", "False", reason, message, now_unix_ns)
        return self._conditions.set("Succeeded", "Unknown", "Waiting", message, now_unix_ns) or changed

    def note_queued(self, queued: bool, now_unix_ns: int) -> None:
        """Tells whether it waits for its turn."""
        ledger = self._ledger
        if queued and not ledger.queued_since_unix_ns:
            ledger.queued_since_unix_ns = now_unix_ns
        elif ledger.queued_since_unix_ns and not queued:
            ledger.queued_ns += max(0, now_unix_ns - ledger.queued_since_unix_ns)
            ledger.queued_since_unix_ns = 0

    def begin_analysis(self, now_unix_ns: int) -> None:
        """All lines are final, the report is being made."""
        self._analyzing = True
        self._stale_since_unix_ns = now_unix_ns

    def end_analysis(self, status: str, reason: str, message: str, now_unix_ns: int) -> None:
        """The report is there ("True"), could not be made ("False"), or is nobody's to make ("Unknown")."""
        self._analyzing = False
        self._conditions.set("Analyzed", status, reason, message, now_unix_ns)

    def note_stacks(self, where: str, sentence: str, now_unix_ns: int) -> None:
        """Stacks were read, stored and judged: of whom, and what the verdict says."""
        for kind, reason, message in (
            ("TargetsResolved", "Resolved", where),
            ("Captured", "StacksRead", where),
            ("Uploaded", "StacksStored", "the stacks are in the store"),
            ("Analyzed", "StacksJudged", sentence),
        ):
            self._conditions.set(kind, "True", reason, message, now_unix_ns)

    def derive(self) -> None:
        """Brings the conditions in line with the lines; to be called before they are shown or written.

        Not at every event: with ten thousand ranks that would be the hub's main work.
        """
        self.lines.settle()
        now_unix_ns, self._stale_since_unix_ns = self._stale_since_unix_ns, 0
        if self._ledger.outcome or not self._ledger.entries or not now_unix_ns:
            return
        lines = self.lines
        beyond, uploaded, open_upload = lines.count_written(), lines.count(RankState.UPLOADED), lines.open_count
        open_capture = open_upload - lines.count(RankState.WRITTEN)
        failed = count_reasons(lines.failures())
        count = count_noun(len(self._ledger.entries), "rank")
        self._conditions.set_progress("Captured", open_capture, beyond, "Capturing", failed, now_unix_ns)
        stage = "Uploading" if not open_capture else "Capturing"
        self._conditions.set_progress("Uploaded", open_upload, uploaded, stage, failed, now_unix_ns)
        if self._analyzing:
            self._conditions.set("Analyzed", "Unknown", "Analyzing", "the report is being made", now_unix_ns)
        state = "Capturing" if open_capture else "Uploading" if open_upload else "Analyzing"
        finished_ranks = uploaded if state != "Capturing" else beyond
        word = "uploaded" if state != "Capturing" else "captured"
        summary = f"{finished_ranks} of {count} {word}" + (f"; failed: {failed}" if failed else "")
        if self._analyzing:
            summary += "; the report is being made"
        self._conditions.set("Succeeded", "Unknown", state, summary, now_unix_ns)

    def conclude(self, status: str, reason: str, message: str, now_unix_ns: int) -> None:
        """Ends the request."""
        if self._ledger.outcome:
            return
        self.derive()
        targets = self._conditions.find("TargetsResolved")
        if not self._ledger.entries and (targets is None or targets.status != "True"):
            # What was waited for last is over, e.g. LookingForPods.
            self._conditions.set("TargetsResolved", "False", reason, message, now_unix_ns)
        for kind in ("Captured", "Uploaded", "Analyzed"):
            condition = self._conditions.find(kind)
            if condition is None or (condition.status == "Unknown" and condition.reason != "NoAnalyzer"):
                self._conditions.set(kind, "False", reason, say_not_done(reason), now_unix_ns)
        self._conditions.set("Succeeded", status, reason, message, now_unix_ns)
        self._ledger.outcome = reason
        self._ledger.message = message
        self._ledger.completed_unix_ns = now_unix_ns

    # ------------------------------------------------------------ inside

    def _merge(self, known: LedgerEntry, update: LedgerEntry, now_unix_ns: int) -> bool:
        merged = merge_entries(known, update)
        if merged == known:
            return False
        self.lines.replace(known, merged)
        self._stale_since_unix_ns = now_unix_ns
        return True


def _find_shared_labels(targets: Sequence[RankTarget]) -> dict[str, str]:
    """Each pod once, not each rank: a node's eight have the same."""
    pods = {target.sidecar_id: target.labels for target in targets}
    first, *others = pods.values() or [{}]
    return {key: value for key, value in sorted(first.items()) if all(one.get(key) == value for one in others)}
