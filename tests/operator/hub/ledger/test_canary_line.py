"""The canary of one ledger: a line for each try, which only moves forward, and a verdict."""

from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canary, CanaryVerdict, Ledger, RankState, Reason
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.planning.rank_targets import RankTarget

TARGET = RankTarget(
    rank=3,
    process=pb.Process(process_id="p", pid=7),
    rank_source="RANK_AGENT",
    sidecar_id="s",
    pod_name="pod",
    node_name="node",
)


def make_book(**fields: Any) -> LedgerBook:
    return LedgerBook(Ledger(uid="u", name="n", namespace="team", **fields))


def event(state: pb.RankState.ValueType, **fields: Any) -> pb.CaptureEvent:
    named: dict[str, Any] = {"process_id": "p", "rank": 3, **fields}
    return pb.CaptureEvent(**named, state=state)


def test_each_try_has_a_line_of_its_own() -> None:
    book = make_book()
    first = book.canary.begin(TARGET, 10)
    assert (first.rank, first.process_id, first.state, first.asked_unix_ns) == (3, "p", RankState.ASKED, 10)
    failed = book.canary.fail(first, Reason.TOO_LATE, "late", 20)
    assert book.canary.entry == failed
    assert (failed.state, failed.reason, failed.failed_unix_ns) == (RankState.FAILED, Reason.TOO_LATE, 20)
    second = book.canary.begin(TARGET, 30)
    assert (book.canary.entry, book.canary.known.tries, second.state) == (second, 2, RankState.ASKED)
    assert book.ledger.entries == []  # it is none of the capture's lines


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([pb.ARMED, pb.STARTED, pb.WRITTEN], RankState.WRITTEN),
        ([pb.WRITTEN, pb.ARMED], RankState.WRITTEN),
        ([pb.ARMED, pb.FAILED, pb.STARTED], RankState.FAILED),
    ],
)
def test_its_line_only_moves_forward(states: list[pb.RankState.ValueType], expected: RankState) -> None:
    book = make_book()
    book.canary.begin(TARGET, 10)
    assert all(book.canary.apply(event(state)) for state in states)
    assert book.canary.entry is not None
    assert book.canary.entry.state is expected


@pytest.mark.parametrize("fields", [{"process_id": "q"}, {"rank": 4}])
def test_events_about_others_change_nothing(fields: dict[str, Any]) -> None:
    book = make_book()
    assert not book.canary.apply(event(pb.ARMED))  # nobody was ordered
    line = book.canary.begin(TARGET, 10)
    assert not book.canary.apply(event(pb.ARMED, **fields))
    assert book.canary.entry is line


def test_a_verdict_leaves_the_line() -> None:
    book = make_book()
    line = book.canary.begin(TARGET, 10)
    book.canary.conclude(CanaryVerdict.UNHARMED, "as before")
    assert book.ledger.canary == Canary(verdict=CanaryVerdict.UNHARMED, message="as before", tries=1, entry=line)


def test_none_is_needed() -> None:
    book = make_book()
    book.canary.omit("a capture told the cost")
    assert book.ledger.canary == Canary(verdict=CanaryVerdict.NOT_NEEDED, message="a capture told the cost")
    assert (book.canary.entry, book.canary.known.tries) == (None, 0)


def test_a_ledger_that_was_read_back_goes_on_counting() -> None:
    book = make_book(canary=Canary(tries=1))
    book.canary.begin(TARGET, 10)
    assert book.canary.known.tries == 2


def test_what_was_taken_from_the_ledger_stays_as_it_was() -> None:
    """The ledger is encoded in a thread while its book goes on."""
    book = make_book()
    book.canary.begin(TARGET, 10)
    earlier = book.ledger.canary
    book.canary.apply(event(pb.ARMED))
    book.canary.conclude(CanaryVerdict.HARMED, "slower")
    assert earlier is not None
    assert (earlier.verdict, earlier.entry is not None and earlier.entry.state) == (CanaryVerdict.NONE, RankState.ASKED)
