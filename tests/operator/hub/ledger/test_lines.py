"""A ledger's lines, counted and written as they change: the same as by going through all of them."""

import asyncio
from typing import Any

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Condition, Ledger, LedgerEntry, RankState, Reason, is_final
from fleetprof_operator.hub.ledger.line_forms import LineForms
from fleetprof_operator.hub.ledger.lines import Lines
from fleetprof_operator.hub.ledger.messages import to_status
from hypothesis import given
from hypothesis import strategies as st

REASONS = [None, Reason.BUSY, Reason.TOO_LATE]
STEPS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(list(RankState)), st.sampled_from(REASONS), st.booleans()), max_size=30
)


def make_entry(place: int, **fields: Any) -> LedgerEntry:
    # Two sidecars whose ranks are mixed, told of in an order that is not theirs.
    return LedgerEntry(rank=(place * 5) % 8, process_id=f"p{place}", sidecar_id=f"s{place % 2}", **fields)


def play(steps: list[tuple[int, RankState, Reason | None, bool]]) -> tuple[Ledger, Lines]:
    ledger = Ledger(uid="u", name="n", namespace="team")
    lines = Lines(ledger)
    for place, state, reason, written in steps:
        fresh = make_entry(place, state=state, reason=reason, written_unix_ns=int(written))
        known = lines.find(fresh.sidecar_id, fresh.process_id)
        if known is None:
            lines.add([fresh])
        else:
            lines.replace(known, msgspec.structs.replace(fresh, written_unix_ns=max(known.written_unix_ns, written)))
    return ledger, lines


@given(steps=STEPS)
def test_the_answers_are_those_of_going_through_all_lines(steps: Any) -> None:
    ledger, lines = play(steps)
    entries = ledger.entries
    still_open = [entry for entry in entries if not is_final(entry)]
    assert lines.open_count == len(still_open)
    assert lines.open_entries() == still_open
    assert all(lines.is_open(e.sidecar_id, e.process_id) is not is_final(e) for e in entries)
    assert not lines.is_open("s0", "nobody")
    assert set(lines.open_sidecars()) == {entry.sidecar_id for entry in still_open}
    assert lines.sidecars() == sorted({entry.sidecar_id for entry in entries})
    for state in RankState:
        assert lines.count(state) == sum(entry.state is state for entry in entries)
    written = [e for e in entries if e.written_unix_ns or e.state in (RankState.WRITTEN, RankState.UPLOADED)]
    assert lines.count_written() == len(written)
    failed = [entry.reason or Reason.INTERNAL for entry in entries if entry.state is RankState.FAILED]
    assert lines.failures() == {reason: failed.count(reason) for reason in set(failed)}
    lines.settle()
    assert [entry.rank for entry in ledger.entries] == sorted(entry.rank for entry in entries)
    assert lines.open_of("s1") == [e for e in ledger.entries if e.sidecar_id == "s1" and not is_final(e)]
    assert all(lines.find(entry.sidecar_id, entry.process_id) is entry for entry in ledger.entries)


@given(steps=STEPS, again=STEPS)
def test_lines_are_written_and_shown_as_from_the_whole_ledger(steps: Any, again: Any) -> None:
    ledger = Ledger(uid="u", name="n", namespace="team", message='a\n "entries": [] b')
    ledger.conditions = [Condition(type="Captured", status="True", reason="x", message='\n "entries": []')]
    lines, forms = Lines(ledger), LineForms(ledger)
    for some in (steps, again):
        for place, state, reason, _ in some:
            fresh = make_entry(place, state=state, reason=reason, message="said\n")
            known = lines.find(fresh.sidecar_id, fresh.process_id)
            lines.replace(known, fresh) if known is not None else lines.add([fresh])
        lines.settle()
        write = forms.snapshot()
        expected = msgspec.json.format(msgspec.json.encode(ledger), indent=1)
        whole = to_status(ledger, target="t", request_json="{}", finished=False, report_location="")
        bare = to_status(ledger, target="t", request_json="{}", finished=False, report_location="", with_ranks=False)
        asyncio.run(forms.refresh())
        assert forms.show(bare) == whole
        assert write() == expected
    lines.clear()
    assert forms.snapshot()() == msgspec.json.format(msgspec.json.encode(ledger), indent=1)
    assert forms.show(pb.CaptureStatus()).ranks == []
