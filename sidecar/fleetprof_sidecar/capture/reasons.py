"""The reason why no trace came: a `Reason` and a sentence for people, the most certain cause first."""

from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar.capture.events import Tick
from fleetprof_sidecar.capture.orders import window_end_unix_ns
from fleetprof_sidecar.capture.process_capture import ProcessCapture

# The lead is the next poll, its margin and two steps (the hub's plan.py).
_FIND_A_GAP = (
    "ask when it does not run; between two of its cycles there must be room for this window and some 3 s before it: "
    "give its schedule a longer wait, or ask for fewer iterations"
)


def explain_missing_file(capture: ProcessCapture, tick: Tick) -> tuple[Reason, str]:
    """The reason why an order that is outstanding, or a trace that was begun, will give no file."""
    terms = capture.terms
    if capture.cancel_reason is not None and capture.own_profile_unix_ns:
        return capture.cancel_reason, f"{capture.cancel_message}; the job's own torch.profiler had dropped the trace"
    if capture.cancel_reason is not None:
        return capture.cancel_reason, (
            f"{capture.cancel_message}; the agent did not confirm, so the trace ends with its window and is discarded"
        )
    if capture.orderly_end is not None:
        return explain_end_of_process(capture.orderly_end)
    hint = f"; {tick.hint}" if tick.hint else ""
    if capture.state == RankState.ASKED:
        return explain_expiry(capture, "time", tick.last_poll_unix_ns)
    if capture.own_profile_unix_ns:
        after_s = (capture.own_profile_unix_ns - capture.asked_unix_ns) / 1e9
        return Reason.CANCELLED_BY_USER_PROFILER, (
            f"the job's own torch.profiler began {after_s:.1f} s after this rank was asked, and takes precedence: "
            f"the profiler dropped this trace; {_FIND_A_GAP}"
        )
    if capture.dropped_by_agent:
        step = "unknown" if tick.step is None else str(tick.step)
        return Reason.NOT_STEPPING, (
            f"the agent gave the trace up: its window should end with step {terms.last_step}, the last seen is {step}"
        )
    if capture.state == RankState.ARMED:
        if terms.first_step is not None and tick.step is not None and tick.step < terms.first_step - 1:
            return Reason.NOT_STEPPING, f"optimizer step {terms.first_step} never came, the last seen is {tick.step}"
        if tick.busy:
            return Reason.CANCELLED_BY_USER_PROFILER, "another profile ran in the process when the window came"
        return Reason.NOT_STARTED, f"the profiler took the order, and no sign of a trace was seen{hint}"
    if capture.tmp_bytes:
        return Reason.CANNOT_WRITE, (
            f"writing stopped at {capture.tmp_bytes} bytes; check the free space of the traces directory{hint}"
        )
    if tick.busy and 0 < (window_end_unix_ns(terms) or 0) < tick.at_unix_ns:
        return Reason.CANCELLED_BY_USER_PROFILER, (
            "the window is over, nothing of it was written, and the job's own torch.profiler records meanwhile, which "
            f"takes precedence; {_FIND_A_GAP}"
        )
    if tick.busy:
        if terms.first_step is not None:
            step = "unknown" if tick.step is None else str(tick.step)
            return Reason.NOT_STEPPING, f"the window's last step {terms.last_step} never came, the last seen is {step}"
        return Reason.DEADLINE_EXCEEDED, "the trace was still being taken at the request's deadline"
    if capture.tmp_bytes == 0 or tick.profiles_itself:
        return Reason.CANCELLED_BY_USER_PROFILER, (
            f"the trace was begun and dropped: the job's own torch.profiler takes precedence; {_FIND_A_GAP}"
        )
    return Reason.CANNOT_WRITE, (
        "traced, but no file appeared: KINETO_ONDEMAND_TRACE_DIR must name the traces directory, and the training "
        f"process must be able to write there{hint}"
    )


def explain_expiry(capture: ProcessCapture, why: str, last_poll_unix_ns: int) -> tuple[Reason, str]:
    """The reason why an order was never delivered; `why` and `last_poll_unix_ns` as in `processes.events.Expired`."""
    if why == "time" and last_poll_unix_ns <= capture.asked_unix_ns:
        return Reason.NOT_POLLING, "the process no longer asks for work; is it stopped or hanging?"
    if why == "own" and not capture.terms.has_agent:
        return Reason.BUSY, (
            "the job profiles itself, and a trace of ours that meets its profile may end the job where nothing keeps "
            "them apart; load the agent"
        )
    if why == "own":
        return Reason.BUSY, (
            "the job's own torch.profiler was at work until the order's time was over, and takes precedence; "
            f"{_FIND_A_GAP}"
        )
    if why == "busy":
        return Reason.BUSY, "another profile was running in the process until the order's time was over"
    if why == "role":
        return Reason.NOT_POLLING, "the process has shown itself to be a launcher or a worker, which are never traced"
    if why == "step":
        return Reason.TOO_LATE, f"step {capture.terms.first_step} had passed before the process asked for its order"
    return Reason.TOO_LATE, "the process did not ask for its order before the start"


def explain_end_of_process(orderly_end: bool) -> tuple[Reason, str]:
    """The reason of the process's end; `orderly_end`: its agent said goodbye."""
    if orderly_end:
        return Reason.PROCESS_EXITED, "the process ended, by itself or by an exception, before its trace was complete"
    return Reason.PROCESS_KILLED, "a signal or a crash ended the process before its trace was complete"
