"""The rules of a capture whose trace stays where it is: a summary of it goes to the store."""

import pytest
from fleetprof_api.ledger import Reason
from fleetprof_sidecar.capture import events as c
from fleetprof_sidecar.capture.finished_trace import STORE_PATIENCE_NS
from fleetprof_sidecar.capture.machine import resume
from fleetprof_sidecar.capture.process_capture import Terms
from harness.sidecar.played_capture import (
    AUTO,
    GIVE_UP,
    STORED,
    SUMMARY,
    TO_WRITTEN,
    S,
    play,
)

GATHERED = [*TO_WRITTEN, c.SamplesReady(STORED, "", 51 * S)]
SUMMARISED = [*GATHERED, c.SummaryReady(STORED, "", 52 * S)]
DELIVERED = [*SUMMARISED, c.SummaryStored(53 * S), c.SamplesStored(54 * S)]
NO_SUMMARY = [*GATHERED, c.SummaryReady(None, "no memory", 52 * S)]


@pytest.mark.parametrize(
    ("start", "events", "state", "effects"),
    [
        (SUMMARY, TO_WRITTEN, "WRITTEN", ["report", "tell agent done", "gather samples"]),
        (SUMMARY, GATHERED, "WRITTEN", ["summarise"]),
        (SUMMARY, [*TO_WRITTEN, c.SamplesReady(None, "no room", 51 * S)], "WRITTEN", ["summarise"]),
        (SUMMARY, SUMMARISED, "WRITTEN", ["upload summary"]),
        (SUMMARY, [*SUMMARISED, c.SummaryStored(53 * S)], "WRITTEN", ["upload samples"]),
        (SUMMARY, DELIVERED, "UPLOADED", ["report", "discard"]),
        (SUMMARY, [*DELIVERED, c.TraceWanted(55 * S)], "UPLOADED", []),
        (SUMMARY, NO_SUMMARY, "FAILED", ["report", "tell agent done", "stop work", "discard"]),
        (SUMMARY, [*SUMMARISED, c.UploadEnded("no", "summary", 53 * S)], "FAILED", None),
        (SUMMARY, [*SUMMARISED, c.SummaryStored(53 * S), c.UploadEnded("no", "samples", 54 * S)], "UPLOADED", None),
        # Auto: the trace stays until it is asked for, or let go.
        (AUTO, DELIVERED, "UPLOADED", ["report"]),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S)], "UPLOADED", ["upload trace"]),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S), c.TraceWanted(56 * S)], "UPLOADED", []),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S), c.TraceStored(56 * S)], "UPLOADED", ["discard"]),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S), c.UploadEnded("no", "trace", 56 * S)], "UPLOADED", ["discard"]),
        (AUTO, [*DELIVERED, c.Tick(GIVE_UP + STORE_PATIENCE_NS)], "UPLOADED", ["stop work", "discard"]),
        # Auto without a summary: the trace instead, at once.
        (AUTO, NO_SUMMARY, "WRITTEN", ["upload trace"]),
        (AUTO, [*NO_SUMMARY, c.TraceStored(53 * S)], "WRITTEN", ["upload samples"]),
        (AUTO, [*NO_SUMMARY, c.TraceStored(53 * S), c.SamplesStored(54 * S)], "UPLOADED", ["report", "discard"]),
    ],
)
def test_the_way_of_a_summary(start: Terms, events: list[c.Event], state: str, effects: list[str] | None) -> None:
    capture, actions = play(events, start)
    assert capture.state == state
    if effects is not None:
        assert actions == effects


def test_a_rank_without_a_summary_says_why() -> None:
    failed, _ = play(NO_SUMMARY, SUMMARY)
    assert (failed.reason, failed.message) == (Reason.SUMMARY_FAILED, "no summary could be made: no memory")
    whole, _ = play([*NO_SUMMARY, c.TraceStored(53 * S), c.SamplesStored(54 * S)], AUTO)
    assert whole.message == "its whole trace was uploaded, for no summary could be made: no memory"


@pytest.mark.parametrize(
    ("start", "events", "effects"),
    [
        (SUMMARY, TO_WRITTEN, ["gather samples"]),
        (SUMMARY, GATHERED, ["summarise"]),
        (SUMMARY, SUMMARISED, ["upload summary"]),
        (SUMMARY, [*SUMMARISED, c.SummaryStored(53 * S)], ["upload samples"]),
        (AUTO, NO_SUMMARY, ["upload trace"]),
        (AUTO, DELIVERED, []),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S)], ["upload trace"]),
    ],
)
def test_a_restart_takes_up_a_summary(start: Terms, events: list[c.Event], effects: list[str]) -> None:
    assert resume(play(events, start)[0])[1] == effects
