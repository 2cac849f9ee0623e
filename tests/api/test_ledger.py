"""Two accounts of one rank join to one, in any order and any number of times: the hub may hear them as they come."""

import msgspec
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry, RankState, Reason, RecordingCost, is_final, merge_entries
from hypothesis import given
from hypothesis import strategies as st

times = st.integers(0, 5)
entries = st.builds(
    LedgerEntry,
    rank=st.just(3),
    process_id=st.just("p"),
    sidecar_id=st.sampled_from(["", "s", "t"]),
    node_name=st.sampled_from(["", "n"]),
    pid=st.integers(0, 2),
    state=st.sampled_from(RankState),
    reason=st.none() | st.sampled_from(Reason),
    message=st.sampled_from(["", "a", "b"]),
    asked_unix_ns=times,
    armed_unix_ns=times,
    started_unix_ns=times,
    written_unix_ns=times,
    uploaded_unix_ns=times,
    failed_unix_ns=times,
    trace_bytes=st.integers(0, 2),
    compressed_bytes=st.integers(0, 2),
    sha256=st.sampled_from(["", "x", "y"]),
    recording_cost=st.none()
    | st.builds(RecordingCost, events=st.integers(0, 2), memory_peak_bytes=times, memory_after_bytes=times),
)


def joined(first: LedgerEntry, *others: LedgerEntry) -> bytes:
    result = first
    for other in others:
        result = merge_entries(result, other)
    return msgspec.json.encode(result)


@given(entries, entries)
def test_the_order_of_two_accounts_does_not_matter(a: LedgerEntry, b: LedgerEntry) -> None:
    assert joined(a, b) == joined(b, a)


@given(entries, entries, entries)
def test_the_grouping_of_accounts_does_not_matter(a: LedgerEntry, b: LedgerEntry, c: LedgerEntry) -> None:
    assert msgspec.json.encode(merge_entries(merge_entries(a, b), c)) == msgspec.json.encode(
        merge_entries(a, merge_entries(b, c))
    )


@given(entries, entries)
def test_hearing_an_account_again_changes_nothing(a: LedgerEntry, b: LedgerEntry) -> None:
    assert joined(a, a) == msgspec.json.encode(a)
    assert joined(a, b, b, a) == joined(a, b)


@given(entries, entries)
def test_a_state_only_moves_forward(a: LedgerEntry, b: LedgerEntry) -> None:
    order = ["ASKED", "ARMED", "STARTED", "WRITTEN", "FAILED", "UPLOADED"]
    assert order.index(merge_entries(a, b).state) == max(order.index(a.state), order.index(b.state))


def test_a_stored_trace_counts_whatever_else_was_thought_of_its_rank() -> None:
    failed = LedgerEntry(rank=0, process_id="p", state=RankState.FAILED, reason=Reason.SIDECAR_LOST)
    stored = LedgerEntry(rank=0, process_id="p", state=RankState.UPLOADED)
    assert merge_entries(failed, stored).state == RankState.UPLOADED


def test_accounts_of_different_processes_do_not_join() -> None:
    with pytest.raises(ValueError, match="different lines"):
        merge_entries(LedgerEntry(rank=0, process_id="p"), LedgerEntry(rank=0, process_id="q"))


@pytest.mark.parametrize("state", RankState)
def test_a_line_is_final_when_its_trace_is_stored_or_lost(state: RankState) -> None:
    entry = LedgerEntry(rank=0, process_id="p", state=state)
    assert is_final(entry) == (state in (RankState.UPLOADED, RankState.FAILED))


def test_the_states_are_those_of_the_protocol() -> None:
    assert {state.value for state in RankState} | {"RANK_STATE_UNSPECIFIED"} == set(pb.RankState.keys())


def test_a_line_knows_what_its_recording_took_as_the_protocol_does() -> None:
    assert set(RecordingCost.__struct_fields__) == {field.name for field in pb.RecordingCost.DESCRIPTOR.fields}
