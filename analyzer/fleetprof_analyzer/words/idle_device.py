"""What it is that devices stand idle for, where it lies, and what to try.

Guarantees: pure; a place adds nothing where a trace says nothing of it.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.job.findings.findings import READING_OPERATORS
from fleetprof_analyzer.job.findings.found import IdleDevice, IdleKind
from fleetprof_analyzer.job.findings.guards import MOST_OF_A_PLACE
from fleetprof_analyzer.words.code_places import name_code_place
from fleetprof_analyzer.words.host_findings import say_faster_loading

READ_LESS: Final = "keep losses and metrics on the device, and read them (.item(), .cpu(), print) only now and then"
_LONGEST: Final = 60
_MESSAGES: Final[dict[IdleKind, str]] = {
    "data_loading": "the GPU waits for the next batch",
    "synchronization": "the host waits for the GPU, which then has nothing left to do",
    "launch_bound": "the host cannot launch work as fast as the GPU does it",
    "python": "the GPU waits for Python between operators",
    "allocation": "the GPU waits for memory to be allocated or freed",
    "optimizer": "the GPU waits for the optimizer's host code",
    "waiting": "work that is launched does not begin, though no recorded work runs on its device",
}


def say_idle_device(idle: IdleDevice, names: Sequence[str]) -> tuple[str, str]:
    """(what it is, what to try); `names` are the operators that the finding shows."""
    message = "the GPU waits for zero_grad() on the host" if idle.zero_grad else _MESSAGES[idle.cause]
    return message if idle.place is None else message + _say_place(idle.place, idle.place_permille), _advise(
        idle, names
    )


def _advise(idle: IdleDevice, names: Sequence[str]) -> str:
    line = None if idle.place is None or idle.place.place is None else name_code_place(idle.place.place)
    match idle.cause:
        case "data_loading":
            cheaper = f"make {line} cheaper" if line else "prepare samples more cheaply"
            more = "give the DataLoader more workers, prefetching and pinned memory"
            return say_faster_loading(more, cheaper, cores_busy=idle.cores_busy)
        case "synchronization":
            reading = [_short(name) for name in names if name in READING_OPERATORS]
            if reading:
                return f"find what calls {reading[0]}{f' (look at {line})' if line else ''}: {READ_LESS}"
            at = f"look at {line}: " if line else ""
            return f"{at}leave out torch.cuda.synchronize(), copy from pinned memory, and {READ_LESS}"
        case "launch_bound":
            return "try torch.compile or CUDA graphs, which launch many kernels at once, or a larger batch"
        case "python":
            if line:
                return f"look at {line}: do it less often, or on another thread"
            return "a capture of stacks names the line of code there (--collect Stacks --iterations 3)"
        case "allocation":
            return (
                "keep shapes the same, leave out torch.cuda.empty_cache() in the loop, and try "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
            )
        case "optimizer":
            if idle.zero_grad == "zeroes":
                return "let zero_grad() drop the gradients (set_to_none=True, the default), which launches nothing"
            if idle.zero_grad == "drops":
                return "call zero_grad() while the device still has work, before the loss is read (.item())"
            return "make the optimizer with fused=True, or else with foreach=True"
        case "waiting":
            return (
                "look in the timeline at what the host, other ranks and other devices do until the gap ends: the work "
                "waits for one of them (wait_event, a host function, a receive), or for what is not in the trace"
            )


def _say_place(place: IdlePlace, permille: int) -> str:
    """`, most of it between aten::item and aten::add_, before relu on stream 7`; less than half with its share."""
    between = ""
    if place.after or place.before:
        between = f" between {_short(place.after) or 'the start'} and {_short(place.before) or 'the end'}"
    ends = [f"after {_short(place.after_work)} on stream {place.after_stream}"] if place.after_work else []
    ends += [f"before {_short(place.before_work)} on stream {place.before_stream}"] if place.before_work else []
    if not between and not ends:
        return ""
    part = "most of it" if MOST_OF_A_PLACE.allows(permille, 1000) else f"{permille // 10} % of it"
    return f", {part}{between}{',' if between and ends else ''}{' ' if ends else ''}{' and '.join(ends)}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
