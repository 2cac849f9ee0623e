"""What it is that devices stand idle for, where it lies, and what to try.

Guarantees: pure; a place adds nothing where a trace says nothing of it.
"""

from typing import Final

from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.job.findings.found import IdleDevice, IdleKind

_LONGEST: Final = 60
_WORDS: Final[dict[IdleKind, tuple[str, str]]] = {
    "data_loading": (
        "the GPUs wait for the next batch",
        "more workers in the DataLoader, pinned memory, prefetching, or cheaper preparation of samples",
    ),
    "synchronization": (
        "the host waits for the GPU, which then has nothing left to do",
        "fewer .item(), .cpu(), torch.cuda.synchronize() and printed losses per iteration; copies from pinned memory",
    ),
    "launch_bound": (
        "the host cannot launch work as fast as the GPU does it",
        "CUDA graphs or torch.compile, fused operators, a larger batch",
    ),
    "python": (
        "the GPU waits for Python between operators",
        "move work out of the training loop; look at the stacks of the host (collect: Stacks)",
    ),
    "allocation": (
        "the GPU waits for memory to be allocated or freed",
        "shapes that stay the same, expandable segments, no torch.cuda.empty_cache() in the loop",
    ),
    "optimizer": (
        "the GPU waits for the optimizer's host code",
        "the optimizer's fused=True, or foreach=True",
    ),
    "waiting": (
        "work that is launched waits for another stream, a copy or other ranks",
        "find the row on another stream that ends where the gap ends: begin that work earlier, or do not wait for it "
        "(wait_stream, wait_event, record_stream)",
    ),
}


def say_idle_device(idle: IdleDevice) -> tuple[str, str]:
    """(what it is, what to try)."""
    message, advice = _WORDS[idle.cause]
    return message if idle.place is None else message + _say_place(idle.place), advice


def _say_place(place: IdlePlace) -> str:
    """`, most of it between aten::item and aten::add_, before relu on stream 7`."""
    between = ""
    if place.after or place.before:
        between = f" between {_short(place.after) or 'the start'} and {_short(place.before) or 'the end'}"
    ends = [f"after {_short(place.after_work)} on stream {place.after_stream}"] if place.after_work else []
    ends += [f"before {_short(place.before_work)} on stream {place.before_stream}"] if place.before_work else []
    if not between and not ends:
        return ""
    return f", most of it{between}{',' if between and ends else ''}{' ' if ends else ''}{' and '.join(ends)}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
