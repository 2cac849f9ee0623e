"""One capture played through the state machine: its terms, the events on a good way, and where they lead."""

from typing import Any

from fleetprof_api.choices import Traces
from fleetprof_sidecar.capture import events as c
from fleetprof_sidecar.capture.machine import advance, begin
from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture, StoredFile, Terms
from fleetprof_sidecar.processes.events import Delivered

S = 10**9
GIVE_UP = 600 * S
STORED = StoredFile(name="f", size_bytes=5, sha256="00", part_sizes=[5], part_sha256=["00"])
NAME = "cap-r3_77.json"


def terms(**more: Any) -> Terms:
    base = {"capture_id": "cap", "process_id": "p", "rank": 3, "pid": 77, "has_agent": True, "first_step": 100}
    return Terms(**{**base, "iterations": 5, "give_up_unix_ns": GIVE_UP, "max_trace_bytes": 1000, **more})


SUMMARY = terms(traces=Traces.SUMMARY)
AUTO = terms(traces=Traces.AUTO)
BLIND = terms(has_agent=False, first_step=None, start_unix_ns=10 * S, duration_ns=S)
CHECKED = c.FileChecked(NAME, "cap-r3", 500, STORED, 40 * S)
TO_ARMED: list[c.Event] = [Delivered("p", 2 * S)]
TO_STARTED: list[c.Event] = [*TO_ARMED, c.TmpSeen(0, 20 * S)]
TO_CHECKING: list[c.Event] = [*TO_STARTED, c.FinalSeen(NAME, 500, 30 * S)]
TO_WRITTEN: list[c.Event] = [*TO_CHECKING, CHECKED]


def play(events: list[c.Event], start: Terms | None = None) -> tuple[ProcessCapture, list[Effect]]:
    """The capture after all events, and the effects of the last one."""
    capture = begin(start or terms(), S)
    effects: list[Effect] = []
    for event in events:
        capture, effects = advance(capture, event)
    return capture, effects
