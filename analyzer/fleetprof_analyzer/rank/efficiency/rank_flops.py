"""The floating-point operations of a rank's measured iterations.

Guarantees: pure; None where the trace says no shapes, or no iteration is complete; what does work without an operator
that says its shapes is named.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from fleetprof_api.report.efficiency import HiddenWork, RankFlops, TypeFlops
from fleetprof_api.report.report import Iteration

from fleetprof_analyzer.rank.efficiency.operator_flops import count_operators
from fleetprof_analyzer.rank.efficiency.operator_work import measure_operator_work
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Category, Rows, Trace

_GRAPH: Final = re.compile(r"GraphLaunch")
_FUSED_PRODUCT: Final = re.compile(r"^triton_(?:tem|mm)_")  # Inductor's templates of products and attention
_TFLOAT32: Final = re.compile(r"tf32|s1688gemm", re.IGNORECASE)  # as cuBLAS and CUTLASS name them


def measure_flops(trace: Trace, iterations: Sequence[Iteration]) -> RankFlops | None:
    """Means over the complete ones of `iterations`."""
    whole = [one for one in iterations if one.complete is not False and one.duration_ns > 0]
    if not trace.inputs or not whole:
        return None
    starts = np.array([one.start_ns for one in whole], np.int64)
    ends = starts + np.array([one.duration_ns for one in whole], np.int64)
    at = np.searchsorted(starts, trace.rows.start_ns, side="right") - 1
    inside = trace.rows.select((at >= 0) & (trace.rows.start_ns < ends[np.maximum(at, 0)]))
    found = count_operators(inside, trace.names, trace.inputs)
    is_known = found.flops >= 0
    by_type: Counter[str] = Counter()
    for kind, flops in zip(found.data_type[is_known].tolist(), found.flops[is_known].tolist(), strict=True):
        by_type[found.data_types[kind]] += flops
    count = len(whole)
    types = [TypeFlops(data_type=kind, flops=flops // count) for kind, flops in by_type.most_common() if flops]
    return RankFlops(
        flops=sum(one.flops for one in types),
        by_type=types,
        iteration_ns=sum(one.duration_ns for one in whole) // count,
        unknown_operators=int((~is_known).sum()) // count,
        hidden=_find_hidden(trace, inside),
        operators=measure_operator_work(trace, inside, found, count),
        single_precision="tfloat32"
        if where_name(inside.select(inside.on_device), trace.names, matcher(_TFLOAT32)).any()
        else "float32",
    )


def _find_hidden(trace: Trace, rows: Rows) -> list[HiddenWork]:
    calls = rows.select(rows.category == Category.RUNTIME)
    kernels = rows.select(rows.on_device)
    hidden: list[HiddenWork] = []
    if where_name(calls, trace.names, matcher(_GRAPH)).any():
        hidden.append("graphs")
    if where_name(kernels, trace.names, matcher(_FUSED_PRODUCT)).any():
        hidden.append("fused")
    return hidden
