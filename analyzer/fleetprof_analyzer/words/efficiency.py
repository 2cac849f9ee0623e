"""The words for floating-point operations: how many, how fast, and how far from the device's published peak."""

from typing import Final

from fleetprof_api.quantities import duration, flops, percent
from fleetprof_api.report.efficiency import Efficiency, HiddenWork
from fleetprof_api.report.report import Report

from fleetprof_analyzer.words.modules import say_roof
from fleetprof_analyzer.words.text import plain

_MOST_TYPES: Final = 3
_MOST_OPERATORS: Final = 3
_SHORT_HOURS: Final = 0.1
_HIDDEN: Final[dict[HiddenWork, str]] = {
    "graphs": "CUDA graphs were replayed, and their operators are in no trace",
    "fused": "fused kernels hold products whose shapes nobody tells",
}


def list_efficiency(report: Report) -> list[str]:
    """Sentences, one of each kind of device; none where no shapes were recorded."""
    return [" ".join((_say_speed(one), *_say_use(one), *_say_roofs(one))) for one in report.efficiency]


def list_throughput(report: Report) -> list[str]:
    """Sentences on what the job goes through in a second; none where nothing says it."""
    found, tree = report.throughput, report.module_tree
    if found is None:
        return []
    sentences = []
    if found.rows_per_second is not None and tree is not None and tree.rows is not None:
        whole = (
            f", {_rate(found.ranks * found.rows_per_second)} on {found.ranks} ranks if each has rows of its own"
            if found.ranks > 1
            else ""
        )
        sentences.append(
            f"{_rate(found.rows_per_second)} samples/s per rank ({tree.rows:,} rows of `{plain(tree.rows_of, 60)}` in "
            f"an iteration of {duration(found.iteration_ns)}){whole}."
        )
    if found.indices_per_second is not None and tree is not None and tree.indices is not None:
        sentences.append(
            f"{_rate(found.indices_per_second)} tokens/s per rank ({tree.indices:,} indices of "
            f"`{plain(tree.indices_of, 80)}`)."
        )
    if found.samples_per_second is not None:
        sentences.append(f"{_rate(found.samples_per_second)} samples/s of the whole job, by the pods' label.")
    costs = []
    if found.gpu_hours_per_thousand is not None:
        hours = found.gpu_hours_per_thousand
        costs.append(f"{_rate(hours)} GPU-hours" if hours >= _SHORT_HOURS else f"{_rate(3600 * hours)} GPU-seconds")
    if found.joules_per_thousand is not None:
        costs.append(f"{_rate(found.joules_per_thousand)} J of the GPUs")
    if costs:
        whose = " if each rank has rows of its own" if found.samples_per_second is None and found.ranks > 1 else ""
        sentences.append(f"1,000 samples take {' and '.join(costs)}{whose}.")
    return [" ".join(sentences)] if sentences else []


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _say_speed(one: Efficiency) -> str:
    device = f" on {plain(one.device_name, 60)}" if one.device_name else ""
    ranks = f", mean of {one.ranks} ranks" if one.ranks > 1 else ""
    types = [kind.data_type or "unknown type" for kind in one.by_type[:_MOST_TYPES]]
    least = "at least " if one.hidden or one.unknown_operators else ""
    return (
        f"{least}{flops(one.flops_per_second)}/s per rank{device}: {flops(one.flops)} ({plain(', '.join(types), 80)}) "
        f"in an iteration of {duration(one.iteration_ns)}{ranks}."
    )


def _say_roofs(one: Efficiency) -> list[str]:
    """The operators whose time is furthest above the least that the device's peaks allow."""
    known = [(one, one.roof_permille) for one in one.operators if one.roof_permille is not None]
    above = sorted(known, key=lambda pair: -pair[0].work_ns * (1000 - pair[1]))[:_MOST_OPERATORS]
    parts = [
        f"`{plain(operator.name, 60)}` {duration(operator.work_ns)} at "
        f"{say_roof(operator.roof, permille, operator.flops, operator.moved_bytes)}"
        for operator, permille in above
        if permille < 1000
    ]
    return [f"Most above the least time: {'; '.join(parts)}."] if parts else []


def _say_use(one: Efficiency) -> list[str]:
    missing = [_HIDDEN[kind] for kind in one.hidden]
    if one.unknown_operators:
        missing.append(f"the shapes of {one.unknown_operators} products in an iteration do not tell theirs")
    if missing:
        return [f"How much of the peak is used cannot be told: {'; '.join(missing)}."]
    if one.peak_flops_per_second is None or one.hardware_utilization_permille is None:
        if not one.device_name:
            return ["No published peak is known for this device."]
        return [f"No published peak is known for {plain(one.device_name, 60)} and these data types."]
    used = percent(one.hardware_utilization_permille / 10)
    peak = f"of the published {flops(one.peak_flops_per_second)}/s ({one.peak_source})"
    if one.model_utilization_permille is None:
        return [f"{used} {peak}, with what may be computed again in backward; ModuleTree tells that apart (MFU)."]
    again = f", {used} with what is computed again in backward (HFU)" if one.recomputed_permille else ""
    return [f"MFU {percent(one.model_utilization_permille / 10)} {peak}{again}."]
