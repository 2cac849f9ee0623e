"""Memory that grows from iteration to iteration in words: whose, how fast, and what keeps it as a rule.

Guarantees: pure; says what grew and never that it is a leak: a cache that fills looks the same.
"""

from typing import Final

from fleetprof_analyzer.job.findings.found import GrowingMemory
from fleetprof_api.report.recording import say_bytes

_KEPT: Final = (
    "keep numbers of past iterations (loss.item(), .detach()) and not tensors, each of which keeps its graph, and "
    "bound caches and lists; "
)


def say_growing_memory(facts: GrowingMemory) -> tuple[str, str]:
    """(what it is, what to try)."""
    growth = facts.growth
    of_process = growth.of == "process"
    whose = "the training process" if of_process else f"PyTorch's allocator on {growth.of}"
    beyond = ", beyond what recording takes" if of_process else ""
    message = (
        f"memory of {whose} grows by {say_bytes(growth.bytes_per_iteration)} an iteration{beyond} "
        f"(in {growth.grown_steps} of {growth.steps}): "
        f"from {say_bytes(growth.first_bytes)} to {say_bytes(growth.last_bytes)}"
    )
    if growth.of not in ("process", "cpu"):
        return message, f"{_KEPT}torch.cuda.memory._record_memory_history() shows the lines that allocated what is held"
    return message, f"{_KEPT}tracemalloc shows the lines that allocated what Python holds"
