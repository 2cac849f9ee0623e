"""What a window in iterations waits for: ranks whose agent is there, and whose training has not begun to step.

A job loads data or compiles for minutes before its first optimizer step, and torch.compile again before the second.
Kineto would make a window in iterations that reaches it then one of 500 ms, and the hub one by time: neither shows a
training iteration.

Guarantees: pure; a job that has stepped and stalls is not waited for, nor is a rank without the agent, of which nobody
knows what it does.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api import hub_pb2 as pb
from fleetprof_api.request import Window

NO_STEP: Final = "NoOptimizerStep"
"""The reason of a request that waits for optimizer steps, or has waited for them until its deadline."""

_ADVICE: Final = "a window in iterations waits for that until the deadline; one of durationMillis does not wait"


def find_stepless(processes: Sequence[pb.Process], window: Window) -> str:
    """Which of these ranks' iterations are not there to be captured yet, as a sentence; empty when all are."""
    if window.iterations is None:
        return ""
    none = sum(process.agent_waits for process in processes)
    few = sum(process.has_agent and process.step.iteration_ns <= 0 for process in processes)
    said = [f"{none} of {len(processes)} ranks have made no optimizer step yet"] if none else []
    said += [f"{few} of {len(processes)} ranks have not made their second iteration yet"] if few else []
    return f"{' and '.join(said)}; {_ADVICE}" if said else ""


def say_no_rank(what: str, waiting: int) -> str:
    """The sentence for a target where so many processes have the agent, and none has shown that it trains."""
    return (
        f"no process of {what} has made an optimizer step yet, {waiting} have PyTorch and the agent loaded; {_ADVICE}"
    )
