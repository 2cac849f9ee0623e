"""The ranks that a request still waits for: those whose agent is there, and whose training has not begun.

A job loads data or compiles for minutes before its first optimizer step, and torch.compile again before the second.
Kineto would make a window in iterations that reaches it then one of 500 ms, and the hub one by time: neither shows a
training iteration. While PyTorch is still being imported, no window at all holds an event.

Guarantees: pure; a request waits neither for a job that has stepped and stalls, nor for a rank without the agent,
because its progress is unknown.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Window

NO_STEP: Final = "NoOptimizerStep"
"""The reason of a request that waits for optimizer steps, or has waited for them until its deadline."""

_ADVICE: Final = "; a window in iterations waits for that, one in time (--duration, durationMillis) does not"


def is_importing(process: pb.Process) -> bool:
    """Tells whether PyTorch is on its way into this process, as its agent says."""
    return process.agent_waits and not process.torch_version


def find_stepless(processes: Sequence[pb.Process], window: Window) -> str:
    """The ranks whose iterations are not there to be captured yet, as a sentence; empty when all are."""
    count, importing = len(processes), sum(map(is_importing, processes))
    parts = [f"{importing} of {count} ranks are still importing PyTorch"] if importing else []
    if window.iterations is None:
        return "".join(parts)
    none = sum(process.agent_waits for process in processes) - importing
    few = sum(process.has_agent and process.step.iteration_ns <= 0 for process in processes)
    parts += [f"{none} of {count} ranks have made no optimizer step yet"] if none else []
    parts += [f"{few} of {count} ranks have not made their second iteration yet"] if few else []
    return " and ".join(parts) + (_ADVICE if none or few else "")


def say_no_rank(what: str, waiting: Sequence[pb.Process]) -> str:
    """The sentence for a target where these processes have the agent, and none has shown that it trains."""
    importing = sum(map(is_importing, waiting))
    loaded = len(waiting) - importing
    parts = [f"{importing} {'is' if importing == 1 else 'are'} still importing PyTorch"] if importing else []
    parts += [f"{loaded} {'has' if loaded == 1 else 'have'} PyTorch and the agent loaded"] if loaded else []
    advice = _ADVICE if loaded else ""
    return f"no process of {what} has made an optimizer step yet, {' and '.join(parts)}{advice}"
