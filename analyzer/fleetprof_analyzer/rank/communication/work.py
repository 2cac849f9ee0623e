"""How much a rank was given to do, how fast its kernels were, and how fast its device's clock ran.

Evidence for causes: more work is no fault, the same kernels taking longer are. Guarantees: pure; empty where unsaid.
"""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.communication.operations import Signature
from fleetprof_analyzer.trace.trace import Bools, Int64s, Rows, Shape, Trace

MOST_SIGNATURES: Final = 64
_MOST_REMEMBERED: Final = 4096
_NUMBER: Final = re.compile(rb"\d{1,10}")
Bounds = Sequence[tuple[int, int]]


def work_by_iteration(trace: Trace, local: Rows, launch_ns: Int64s, bounds: Bounds) -> list[float]:
    """Threads launched by the kernels of each iteration, grid × block; empty where no kernel says its shape."""
    if not bounds or not trace.shapes or len(local) == 0:
        return []
    threads = np.array([_threads(shape) for shape in trace.shapes] + [0.0])
    starts = np.array([start for start, _ in bounds], np.int64)
    at = np.searchsorted(starts, launch_ns, side="right") - 1
    inside = (at >= 0) & (launch_ns < np.array([end for _, end in bounds])[np.maximum(at, 0)])
    total = np.zeros(len(bounds))
    np.add.at(total, at[inside], threads[local.launch_shape[inside]])
    return [float(value) for value in total] if total.any() else []


@lru_cache(_MOST_REMEMBERED)
def _threads(shape: Shape) -> float:
    return float(prod(prod(float(number) for number in _NUMBER.findall(part)) for part in shape))


def sign_kernels(trace: Trace, local: Rows, overlapped: Bools) -> list[Signature]:
    """The kernels that took the most time, by name and launch shape; of duration 0 where none ran alone.

    Rows that ran beside communication (`overlapped`) are counted, and left out of the duration: it slows them, and it
    lasts longest on those who wait.
    """
    if len(local) == 0 or overlapped.all():
        return []
    key = local.name.astype(np.int64) * (len(trace.shapes) + 1) + local.launch_shape + 1
    keys, owner = np.unique(key, return_inverse=True)
    count, total = np.bincount(owner), np.zeros(len(keys), np.int64)
    np.add.at(total, owner[~overlapped], local.duration_ns[~overlapped])
    by_owner, ends = np.argsort(owner, kind="stable"), np.cumsum(count)
    signatures = []
    for number in np.argsort(-total, kind="stable")[:MOST_SIGNATURES].tolist():
        here = by_owner[ends[number - 1] if number else 0 : ends[number]]
        durations = np.sort(local.duration_ns[here[~overlapped[here]]])
        name, shape = divmod(int(keys[number]), len(trace.shapes) + 1)
        text = trace.names[name].encode() + (b"" if shape == 0 else b"%b%b" % trace.shapes[shape - 1])
        signatures.append(Signature(zlib.crc32(text), int(count[number]), _median(durations) if len(durations) else 0))
    return signatures


def _median(ordered: Int64s) -> int:
    return int(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


def clock_by_iteration(samples: RankSamples | None, bounds: Bounds) -> list[float | None]:
    """Median of the device's clock in each iteration, MHz, from its samples; empty without samples."""
    if samples is None or not samples.device.at_unix_ns:
        return []
    pairs = zip(samples.device.at_unix_ns, samples.device.sm_clock_megahertz, strict=False)
    known = np.array([(at, clock) for at, clock in pairs if clock is not None], np.int64).reshape(-1, 2)
    medians = []
    for start, end in bounds:
        inside = known[(known[:, 0] >= start) & (known[:, 0] < end), 1]
        medians.append(float(np.median(inside)) if len(inside) else None)
    return medians
