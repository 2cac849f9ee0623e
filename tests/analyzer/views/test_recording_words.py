"""The memory that recording took of the trainers: no more than its events can take is said to be its own."""

import pytest
from fleetprof_analyzer.words.recording import describe_memory
from fleetprof_api.ledger import LedgerEntry, RankState, RecordingCost
from fleetprof_api.report.report import Report, RequestInfo

MIB = 1 << 20


@pytest.mark.parametrize(("grown_mib", "events", "collect", "context"), [
    (160, 3705, [], "for 3,705 events, which take 38.4 MiB at most: the rest is the job's own growth in that time"),
    (36, 3705, [], "for 3,705 events"),
    (160, 30_000, ["Shapes"], "for 30,000 events"),
    (160, 3705, None, "for 3,705 events"),  # with Shapes, or not
])  # fmt: skip
def test_what_the_job_took_itself_is_not_the_recordings(
    grown_mib: int, events: int, collect: list[str] | None, context: str
) -> None:
    cost = RecordingCost(
        iterations=12, events=events, memory_before_bytes=1000 * MIB, memory_peak_bytes=(1000 + grown_mib) * MIB,
        memory_after_bytes=1000 * MIB,
    )  # fmt: skip
    entry = LedgerEntry(rank=0, process_id="0", state=RankState.UPLOADED, recording_cost=cost)
    found = describe_memory(Report(ledger=[entry], request=RequestInfo(uid="1", collect=collect)))
    assert found is not None
    assert found.peak_context.removeprefix("rank 0: from 1000 MiB to ") == (
        f"{(1000 + grown_mib) / 1024:.2f} GiB, {context}; 1 rank measured"
    )
