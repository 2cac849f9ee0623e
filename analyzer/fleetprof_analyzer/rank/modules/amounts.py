"""The amounts of rows by module: time of operators and of the device, launches, operations.

Guarantees: pure; work of the device goes with the call that launched it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.report.module_tree import ModuleTimes

from fleetprof_analyzer.rank.efficiency.operator_flops import count_operators
from fleetprof_analyzer.rank.efficiency.traffic import count_traffic
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.trace.trace import Bools, Category, Inputs, Int64s, Rows

# Columns of amounts, in the order of ModuleTimes' fields.
HOST, DEVICE, LAUNCHES, OPERATORS, FLOPS, MOVED = range(6)
AMOUNTS: Final = len(ModuleTimes.__struct_fields__)


@dataclass(frozen=True, slots=True)
class Amounts:
    """The amounts that each row adds, shape (n, AMOUNTS): of the host's rows, then of the device's.

    `of_host`: the row of the host that launched each row of the device, or the row itself; NOWHERE: not known.
    """

    of_host: Int64s
    amount: Int64s

    def take(self, column: Int64s, nothing: int) -> Int64s:
        """A column of the host's rows for all rows; `nothing` where the launching row is not known."""
        return np.append(column, nothing)[self.of_host]

    def total(self, mask: Bools) -> ModuleTimes:
        """The sum where `mask`, of all rows, is true."""
        return times_of(self.amount[mask].sum(axis=0))


def times_of(amounts: Int64s) -> ModuleTimes:
    """One row of amounts by its names."""
    return ModuleTimes(**dict(zip(ModuleTimes.__struct_fields__, map(int, amounts), strict=True)))


def measure_amounts(
    host: Rows, own_ns: Int64s, counts: Bools, work: Rows, names: list[str], inputs: list[Inputs]
) -> Amounts:
    """`counts`: the host's rows that are operators of the job; `work`: rows of the device."""
    of_host = np.zeros((len(host), AMOUNTS), np.int64)
    of_host[counts, HOST] = own_ns[counts]
    of_host[counts, OPERATORS] = 1
    counted = count_operators(host, names, inputs)
    of_host[counted.at, FLOPS] = np.maximum(counted.flops, 0)
    traffic = count_traffic(host, names, inputs)
    of_host[traffic.at, MOVED] = np.maximum(traffic.moved_bytes, 0)
    device = np.zeros((len(work), AMOUNTS), np.int64)
    device[:, DEVICE] = work.duration_ns
    device[:, LAUNCHES] = 1
    return Amounts(np.concatenate((np.arange(len(host)), find_launches(host, work))), np.concatenate((of_host, device)))


def find_launches(host: Rows, work: Rows) -> Int64s:
    """The row of the host that launched each row of the device, NOWHERE where it is not among them."""
    calls = np.flatnonzero((host.category == Category.RUNTIME) & (host.correlation >= 0))
    calls = calls[np.argsort(host.correlation[calls], kind="stable")]
    numbers = host.correlation[calls]
    at = np.searchsorted(numbers, work.correlation)
    is_known = at < len(numbers)
    is_known[is_known] = numbers[at[is_known]] == work.correlation[is_known]
    found = np.full(len(work), NOWHERE, np.int64)
    found[is_known] = calls[at[is_known]]
    return found
