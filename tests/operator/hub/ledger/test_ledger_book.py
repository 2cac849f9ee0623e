"""One request's ledger and its conditions, as tables; any order of events comes to the same end."""

import itertools
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger, LedgerEntry, RankState, Reason
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.ledger.outcome import decide_outcome, summarize_failures
from fleetprof_operator.hub.planning.plan import Plan
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from hypothesis import given
from hypothesis import strategies as st

PLAN = Plan(
    mode="step", first_step=50, start_unix_ns=9, deliver_until_unix_ns=8, duration_ns=0, explanation="all begin with 50"
)


def target(rank: int, **fields: Any) -> RankTarget:
    process = pb.Process(process_id=f"p{rank}", pid=100 + rank, polls_kineto=True)
    given_fields: dict[str, Any] = {
        "rank_source": "RANK_AGENT",
        "sidecar_id": "s",
        "pod_name": "pod",
        "node_name": "node",
    }
    return RankTarget(rank=rank, process=process, **(given_fields | fields))


def make_book(ranks: int = 2) -> LedgerBook:
    book = LedgerBook(Ledger(uid="u", name="n", namespace="team", submitted_unix_ns=1))
    book.ask([target(rank) for rank in range(ranks)], PLAN, "", 10)
    return book


def event(rank: int, state: str, **fields: Any) -> pb.CaptureEvent:
    return pb.CaptureEvent(capture_id="u", process_id=f"p{rank}", rank=rank, state=pb.RankState.Value(state), **fields)


def conditions(book: LedgerBook) -> dict[str, tuple[str, str]]:
    book.derive()
    return {c.type: (c.status, c.reason) for c in book.ledger.conditions}


WAITS = {"TargetsResolved": ("True", "Resolved")}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("", {"Captured": ("Unknown", "Capturing"), "Uploaded": ("Unknown", "Capturing"),
              "Succeeded": ("Unknown", "Capturing")}),
        ("0 ARMED 1 STARTED", {"Captured": ("Unknown", "Capturing"), "Uploaded": ("Unknown", "Capturing"),
                               "Succeeded": ("Unknown", "Capturing")}),
        ("0 WRITTEN 1 WRITTEN", {"Captured": ("True", "AllCaptured"), "Uploaded": ("Unknown", "Uploading"),
                                 "Succeeded": ("Unknown", "Uploading")}),
        ("0 WRITTEN 1 FAILED", {"Captured": ("True", "PartiallyCaptured"), "Uploaded": ("Unknown", "Uploading"),
                                "Succeeded": ("Unknown", "Uploading")}),
        ("0 UPLOADED 1 FAILED", {"Captured": ("True", "PartiallyCaptured"), "Uploaded": ("True", "PartiallyUploaded"),
                                 "Succeeded": ("Unknown", "Analyzing")}),
        ("0 UPLOADED 1 UPLOADED", {"Captured": ("True", "AllCaptured"), "Uploaded": ("True", "AllUploaded"),
                                   "Succeeded": ("Unknown", "Analyzing")}),
        ("0 FAILED 1 FAILED", {"Captured": ("False", "AllRanksFailed"), "Uploaded": ("False", "AllRanksFailed"),
                               "Succeeded": ("Unknown", "Analyzing")}),
    ],
)  # fmt: skip
def test_conditions_follow_from_the_lines(reason: str, expected: dict[str, tuple[str, str]]) -> None:
    book = make_book()
    words = reason.split()
    for rank, state in zip(words[::2], words[1::2], strict=True):
        book.apply(event(int(rank), state, reason="TooLate" if state == "FAILED" else ""), "s", 20)
    assert conditions(book) == WAITS | expected


@pytest.mark.parametrize(
    ("states", "cancelled", "late", "expected"),
    [
        ("UU", False, False, ("True", "Complete")),
        ("UU", False, True, ("True", "Complete")),
        ("UF", False, False, ("True", "PartiallyCaptured")),
        ("FF", False, False, ("False", "AllRanksFailed")),
        ("FF", False, True, ("False", "DeadlineExceeded")),
        ("UU", True, False, ("False", "Cancelled")),
        ("FF", True, True, ("False", "Cancelled")),
    ],
)
def test_the_outcome(states: str, cancelled: bool, late: bool, expected: tuple[str, str]) -> None:
    book = make_book()
    for entry, state in zip(list(book.ledger.entries), states, strict=True):
        if state == "U":
            book.mark_uploaded(entry, "", 30)
        else:
            book.fail(entry, Reason.TOO_LATE, "too late", 30)
    if cancelled:
        assert book.cancel(25)
    status, reason, message = decide_outcome(book.ledger, late)
    assert (status, reason) == expected
    book.conclude(status, reason, message, 40)
    assert conditions(book)["Succeeded"] == expected
    assert all(status in ("True", "False") for status, _ in conditions(book).values())
    assert (book.ledger.outcome, book.ledger.completed_unix_ns) == (reason, 40)
    book.conclude("True", "Complete", "", 50)  # the first end counts
    assert (book.ledger.outcome, book.ledger.completed_unix_ns) == (reason, 40)


def test_a_request_that_ends_before_any_rank_was_asked() -> None:
    book = LedgerBook(Ledger(uid="u", name="n", namespace="team"))
    assert book.wait_for("NothingMatched", "nobody there", 5)
    assert not book.wait_for("NothingMatched", "nobody there", 6)
    book.conclude("False", "NothingMatched", "nobody there", 7)
    assert conditions(book) == dict.fromkeys(
        ("TargetsResolved", "Captured", "Uploaded", "Analyzed", "Succeeded"), ("False", "NothingMatched")
    )
    assert [c.transition_unix_ns for c in book.ledger.conditions] == [5, 7, 7, 7, 7]
    assert [c.message for c in book.ledger.conditions] == [
        "nobody there",
        *(["not done: the request ended with NothingMatched"] * 3),
        "nobody there",
    ]


@pytest.mark.parametrize("known", ["LookingForPods", "Gathering"])
def test_a_request_that_is_refused_does_not_go_on_looking_for_pods(known: str) -> None:
    book = LedgerBook(Ledger(uid="u", name="n", namespace="team"))
    book.wait_for(known, "the pods are being looked for", 5)
    book.conclude("False", "AlreadyCapturing", "capture first is capturing rank 0", 7)
    assert conditions(book)["TargetsResolved"] == ("False", "AlreadyCapturing")


def test_every_condition_has_a_sentence_from_the_order_to_the_end() -> None:
    book = make_book(1)
    for at, state in ((20, "ARMED"), (30, "WRITTEN"), (40, "UPLOADED")):
        book.apply(event(0, state), "s", at)
        book.derive()
        assert all(c.message for c in book.ledger.conditions), state
    book.begin_analysis(50)
    book.derive()
    assert all(c.message for c in book.ledger.conditions)
    succeeded = next(c for c in book.ledger.conditions if c.type == "Succeeded")
    assert (succeeded.reason, succeeded.message) == ("Analyzing", "1 of 1 rank uploaded; the report is being made")
    book.end_analysis("True", "ReportMade", "the report is in the store", 60)
    book.conclude("True", "Complete", "1 of 1 rank captured", 70)
    assert all(c.message for c in book.ledger.conditions)


def test_a_condition_keeps_the_time_of_its_status() -> None:
    book = make_book(1)
    for at, state in ((20, "ARMED"), (30, "WRITTEN"), (40, "UPLOADED")):
        book.derive()
        book.apply(event(0, state), "s", at)
    book.derive()
    times = {c.type: c.transition_unix_ns for c in book.ledger.conditions}
    assert times == {"TargetsResolved": 10, "Captured": 30, "Uploaded": 40, "Succeeded": 10}


def test_events_about_others_change_nothing() -> None:
    book = make_book()
    before = list(book.ledger.entries)
    assert not book.apply(event(0, "ARMED"), "another sidecar", 20)
    assert not book.apply(event(7, "ARMED"), "s", 20)
    assert not book.apply(pb.CaptureEvent(process_id="p0", rank=1, state=pb.ARMED), "s", 20)
    assert book.ledger.entries == before
    assert book.apply(event(0, "ARMED"), "s", 20)
    assert not book.apply(event(0, "ARMED"), "s", 21)  # said again


def test_a_rank_that_does_not_poll_fails_at_once() -> None:
    book = LedgerBook(Ledger(uid="u", name="n", namespace="team"))
    deaf = RankTarget(
        rank=0, rank_source="RANK_AGENT", sidecar_id="s", pod_name="", node_name="", process=pb.Process(process_id="p0")
    )
    book.ask([deaf, target(1)], PLAN, "", 10)
    assert [(e.rank, e.state, e.reason) for e in book.ledger.entries] == [
        (0, RankState.FAILED, Reason.NOT_POLLING),
        (1, RankState.ASKED, None),
    ]


def test_a_request_is_cancelled_once_and_not_after_its_end() -> None:
    book = make_book(1)
    assert (book.cancel(20), book.cancel(30), book.ledger.cancelled_unix_ns) == (True, False, 20)
    ended = make_book(1)
    ended.conclude("True", "Complete", "", 15)
    assert (ended.cancel(20), ended.ledger.cancelled_unix_ns) == (False, 0)


def test_the_first_name_of_a_requester_stands() -> None:
    book = make_book(1)
    for requester in ("", "ada", "eve"):
        book.name_requester(requester)
    assert book.ledger.requester == "ada"


STEPS = ["ASKED", "ARMED", "STARTED", "WRITTEN", "UPLOADED", "FAILED"]
EVENTS = st.builds(
    lambda rank, state, at: event(
        rank,
        state,
        reason="TooLate" if state == "FAILED" else "",
        message="late" if state == "FAILED" else "",
        **{f"{state.lower()}_unix_ns": at},
    ),
    st.integers(0, 1),
    st.sampled_from(STEPS),
    st.integers(1, 100),
)


@given(events=st.lists(EVENTS, max_size=5), data=st.data())
def test_any_order_of_events_comes_to_the_same_lines(events: list[pb.CaptureEvent], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(events))
    books = [make_book(), make_book()]
    for book, order in zip(books, (events, [*shuffled, *shuffled]), strict=True):
        for event in order:
            book.apply(event, "s", 20)
    assert books[0].ledger.entries == books[1].ledger.entries
    assert conditions(books[0]) == conditions(books[1])


def test_a_trace_counts_as_captured_though_the_failure_is_heard_first() -> None:
    book = make_book(1)
    for state in ("FAILED", "WRITTEN"):
        book.apply(event(0, state, **{f"{state.lower()}_unix_ns": 30}), "s", 30)
    assert conditions(book)["Captured"] == ("True", "AllCaptured")


@given(events=st.lists(EVENTS, max_size=8))
def test_lines_only_move_forward(events: list[pb.CaptureEvent]) -> None:
    order = ["ASKED", "ARMED", "STARTED", "WRITTEN", "FAILED", "UPLOADED"]
    book = make_book()
    for event in events:
        before = [order.index(e.state) for e in book.ledger.entries]
        book.apply(event, "s", 20)
        after = [order.index(e.state) for e in book.ledger.entries]
        assert all(a >= b for a, b in zip(after, before, strict=True))
        for entry in book.ledger.entries:
            assert (entry.reason is not None) == (entry.state is RankState.FAILED)


def test_the_status_for_people() -> None:
    book = make_book(1)
    book.apply(event(0, "FAILED", reason="Busy", message="another profile ran", failed_unix_ns=33), "s", 30)
    status = book.to_status(target="Job/llama", request_json="{}", finished=False, report_location="")
    assert (status.uid, status.target, status.start_mode, status.first_step, status.finished) == (
        "u", "Job/llama", "step", 50, False,
    )  # fmt: skip
    line = status.ranks[0]
    assert (line.rank, line.state, line.reason, line.message) == (0, pb.FAILED, "Busy", "another profile ran")
    assert (line.asked_unix_ns, line.failed_unix_ns) == (10, 33)


def test_failures_are_counted_by_reason() -> None:
    reasons = [Reason.BUSY, Reason.TOO_LATE, Reason.TOO_LATE]
    entries = [
        LedgerEntry(rank=rank, process_id="p", state=RankState.FAILED, reason=reason)
        for rank, reason in enumerate(reasons)
    ]
    assert {summarize_failures(list(order)) for order in itertools.permutations(entries)} == {"2 TooLate, 1 Busy"}


def test_the_ledger_has_the_labels_that_all_pods_share() -> None:
    of_pods = {"s0": {"team": "vision", "index": "0"}, "s1": {"team": "vision", "index": "1", "only": "here"}}
    targets = [target(rank, sidecar_id=f"s{rank}", labels=of_pods[f"s{rank}"]) for rank in range(2)]
    book = LedgerBook(Ledger(uid="u", name="n", namespace="team", submitted_unix_ns=1))
    book.ask(targets, PLAN, "", 10)
    assert book.ledger.labels == {"team": "vision"}
