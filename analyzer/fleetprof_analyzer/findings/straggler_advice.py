"""Things to try against the fault that a straggler verdict names: by its cause and by what speaks for it.

Guarantees: pure; what the evidence names (a line of code, an operator, a place between operators) is never asked for
again; "" where nobody is to be helped.
"""

from collections.abc import Callable, Mapping
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.stragglers import Cause, Evidence, LateHost, Straggler, Stragglers

from fleetprof_analyzer.findings.synchronization import READ_LESS, READING_OPERATORS
from fleetprof_analyzer.job.stragglers.causes.explanation import PARTS, PARTS_ON_HOST
from fleetprof_analyzer.job.stragglers.sampled_device import SampledDevice
from fleetprof_analyzer.words.code import name_code_place
from fleetprof_analyzer.words.ranks import name_ranks, say_ordinal
from fleetprof_analyzer.words.sampled_device import advise_on_device, say_sampled_device

_OPERATOR: Final = "operator "
_SILENT: Final = "its main thread runs nothing "
_CALLS: Final = "calls per iteration"
_CAUSES_OF_PARTS: Final[Mapping[str, Cause]] = {
    PARTS["busy"]: "slow_gpu",
    PARTS["data"]: "data_loading",
    PARTS["collection"]: "garbage_collection",
    PARTS["host"]: "host",
    PARTS_ON_HOST["busy"]: "host",
    PARTS_ON_HOST["host"]: "host",
}
_SLOW_LINK: Final = (
    "check the links between these ranks: their nodes' adapters, switch and placement, and NCCL_DEBUG=INFO"
)
_OF_PROGRAM: Final = ("unequal_work", "garbage_collection")
"""Causes that another node would not mend."""
_ON_CORES: Final = "what else runs on its cores (top, pidstat), the clocks of its CPUs, memory that it swaps"
_OF_NODE: Final[Mapping[Cause, str]] = {
    "data_loading": "its path to the storage, its disk and page cache, what else runs on its cores",
    "host": _ON_CORES,
    "device_wait": "what its devices wait for (wait_event, host functions), as the timeline shows it",
    "cpu_contention": f"{_ON_CORES}, the CPU limits of its pods",
    "slow_gpu": "power limit, temperature, clocks and ECC counts of its GPUs (nvidia-smi -q, --collect DeviceMetrics)",
    "throttling": "power, temperature and cooling of its GPUs (nvidia-smi -q -d PERFORMANCE)",
    "network": "its adapters, cables and switch, and the path that NCCL took (NCCL_DEBUG=INFO)",
    "mixed": "its GPUs (nvidia-smi -q), its path to the storage, and what else runs on its cores",
}
_OFTEN: Final = "do it less often, on another thread, or at the same iterations on all ranks"


def straggler_advice(found: Stragglers, place: PlaceInCode | None, device: SampledDevice | None = None) -> str:
    """One sentence of things to try; `place` is that of the finding, `device` that of the first rank."""
    if found.verdict == "moving_imbalance":
        return _on_moving(found.cause, place)
    if device is not None and (not found.hosts or say_sampled_device(device)):
        return advise_on_device(device)
    if found.hosts:
        return _on_host_machine(found.hosts[0], found.ranks[0])
    if found.verdict == "slow_link" and not found.ranks:
        return _SLOW_LINK
    if found.verdict in ("straggler", "heavy_stage", "slow_link") and found.ranks:
        first = found.ranks[0]
        late = [one.rank for one in found.ranks] if found.verdict == "heavy_stage" else [first.rank]
        return _BY_CAUSE[first.cause](first, name_ranks(late))
    return ""


def _on_host_machine(late: LateHost, first: Straggler) -> str:
    """Against what all ranks of a node have in common; unless they were given more, that is the node."""
    where = f"the ranks of the node {late.name}"
    if late.cause in _OF_PROGRAM:
        return _BY_CAUSE[late.cause](first, where)
    return f"drain the node {late.name}, or look at it: {_OF_NODE[late.cause]}"


def _on_moving(cause: Cause | None, place: PlaceInCode | None) -> str:
    """Against what goes from rank to rank."""
    match cause:
        case "unequal_work":
            return "make batches of even work: sort or pack sequences by length, and share them out by tokens"
        case "data_loading":
            at = "" if place is None else f", or make {name_code_place(place)} cheaper"
            return f"give the DataLoaders more workers and prefetching, so that a slow batch is ready in time{at}"
        case "garbage_collection":
            return "call gc.disable(), and gc.collect() at the same iterations on all ranks"
        case "host" if place is not None:
            return f"let all ranks pass {name_code_place(place)} at the same iterations, or do it on another thread"
        case _:
            return "make pauses (checkpoints, logging, evaluation) at the same iterations on all ranks"


def _on_loader(late: Straggler, who: str) -> str:
    often = f" in every {say_ordinal(late.every)} batch: a new file or shard may begin there" if late.every else ""
    if late.place is not None:
        at = name_code_place(late.place)
        return f"look at what {at} does on {who}{often or ': its storage, its shard, samples that take longer'}"
    return f"look at what the loader of {who} does{often}" if often else (
        f"give {who} more workers and prefetching; compare its storage, its shard and its samples with the others'"
    )  # fmt: skip


def _on_host(late: Straggler, who: str) -> str:
    """By the line, else the operator, else the place between operators; stacks are asked for where none is known."""
    operator = next((one for one in late.evidence if _is_operator(one)), None)
    if late.place is not None:
        at = name_code_place(late.place)
        if late.every:
            return f"look at what {at} does on {who} in every {say_ordinal(late.every)} iteration: {_OFTEN}"
        if operator is not None:
            return f"look at {at} on {who}: {_on_operator(operator, who)}"
        return f"look at what {at} does on {who}: make it cheaper, do it less often, or on another thread"
    stacks = f"a capture of its stacks names the line (--ranks {late.rank} --collect Stacks --iterations 3)"
    if operator is not None:
        return _on_operator(operator, who)
    silence = next((one for one in late.evidence if one.measure.startswith(_SILENT)), None)
    if silence is not None:
        return f"look at your code {silence.measure.removeprefix(_SILENT)} on {who}; {stacks}"
    if late.every:
        return f"look at what {who} does in every {say_ordinal(late.every)} iteration: {_OFTEN}; {stacks}"
    return f"look at what else runs on the cores of {who}, and at what its Python does more than the others'; {stacks}"


def _is_operator(one: Evidence) -> bool:
    return one.measure.startswith(_OPERATOR) and one.unit in (_CALLS, "ns per iteration")


def _on_operator(one: Evidence, who: str) -> str:
    name = one.measure.removeprefix(_OPERATOR)
    if name in READING_OPERATORS:
        return f"{who} waits in {name}: {READ_LESS}"
    if one.unit == _CALLS:
        return f"find out why {who} calls {name} {one.value:g} times per iteration and the others {one.usual:g} times"
    return f"{name} takes longer on {who} for as many calls: look at its inputs, hooks around it, and its cores"


def _on_collector(late: Straggler, who: str) -> str:
    if any(one.measure.startswith("pauses in which") for one in late.evidence):
        return (
            f"run once with gc.disable() on {who}: if the pauses go, call gc.collect() at the same iterations on all "
            "ranks"
        )
    return "call gc.freeze() after the start, gc.disable(), and gc.collect() at the same iterations on all ranks"


def _on_cores(late: Straggler, who: str) -> str:
    known = {one.measure: one for one in late.evidence}
    cores, threads = known.get("cores that it may use"), known.get("threads of PyTorch")
    if cores is not None and cores.value < cores.usual:
        is_ = "is" if cores.value == 1 else "are"
        return f"give {who} as many cores as the others: {cores.value:g} {is_} allowed there, {cores.usual:g} elsewhere"
    if cores is not None and threads is not None and threads.value > cores.value:
        return (
            f"use no more threads than cores on {who}: {threads.value:g} threads, {cores.value:g} cores "
            "(OMP_NUM_THREADS, torch.set_num_threads)"
        )
    return (
        f"give {who} cores of its own: look at what else runs there (top, pidstat), its affinity, and its container's "
        "CPU limit"
    )


def _on_work(late: Straggler, who: str) -> str:
    if any(one.measure == "kernels" and one.unit == _CALLS for one in late.evidence):
        return f"look for what {who} alone computes, such as metrics, or more micro-batches than the others"
    even = "give all ranks even shares, by tokens and not by samples; sort or pack sequences by length"
    if any(one.unit.startswith("elements ") or one.measure.startswith("threads that") for one in late.evidence):
        return even
    return f"{even}; a capture with shapes shows which inputs are larger (--collect Shapes)"


def _on_device(_late: Straggler, who: str) -> str:
    return (
        f"run {who} on another GPU: if the slowness stays with the GPU, it is the GPU; look at its clocks, temperature "
        "and ECC counts (--collect DeviceMetrics)"
    )


def _on_device_wait(_late: Straggler, who: str) -> str:
    return (
        f"look in the timeline at what the device of {who} waits for before its collectives begin (wait_event, a host "
        "function, another device): its host launched them in time"
    )


def _on_clock(late: Straggler, who: str) -> str:
    check = f"check power limit, temperature and cooling of the GPU of {who} (nvidia-smi -q -d PERFORMANCE)"
    if any(one.measure == "clock of the device" for one in late.evidence):
        return check
    return f"{check}; a capture with --collect DeviceMetrics shows whether its clock drops"


def _on_network(_late: Straggler, who: str) -> str:
    return (
        f"check the links of {who} (nvidia-smi nvlink --errorcounters), its adapter's counters and cable, and the path "
        "that NCCL took (NCCL_DEBUG=INFO)"
    )


def _on_stage(_late: Straggler, who: str) -> str:
    return f"move layers from the stage of {who} to others; the embedding and the head count as layers"


def _on_several(late: Straggler, who: str) -> str:
    """Against the largest part of them."""
    parts = [one for one in late.evidence if one.measure in _CAUSES_OF_PARTS]
    if not parts:
        return _on_host(late, who)
    largest = max(parts, key=lambda one: one.value - one.usual)
    return f"begin with {largest.measure}: {_BY_CAUSE[_CAUSES_OF_PARTS[largest.measure]](late, who)}"


_BY_CAUSE: Final[Mapping[Cause, Callable[[Straggler, str], str]]] = {
    "data_loading": _on_loader,
    "host": _on_host,
    "device_wait": _on_device_wait,
    "garbage_collection": _on_collector,
    "cpu_contention": _on_cores,
    "unequal_work": _on_work,
    "slow_gpu": _on_device,
    "throttling": _on_clock,
    "network": _on_network,
    "stage_imbalance": _on_stage,
    "mixed": _on_several,
}
