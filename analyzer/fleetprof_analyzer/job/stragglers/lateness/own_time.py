"""The work of each rank itself in each iteration, beside its peers: the table that the tests of stragglers read.

Guarantees: integer nanoseconds; a rank is never among its own peers, so that a fault does not hide in a small group.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import FEW_ITERATIONS
from fleetprof_analyzer.rank.communication.core_waits import CoreWaits
from fleetprof_analyzer.rank.communication.operations import RankOperations, Signature
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse
from fleetprof_analyzer.trace.trace import Bools, Int64s

Floats = npt.NDArray[np.float64]
COMPONENTS = ("busy", "data", "collection", "host")


def _unsaid() -> Floats:
    return np.full((1, 1), np.nan)


@dataclass(frozen=True, slots=True)
class OwnTime:
    """R ranks × K iterations. `host` is what neither work, data loading nor the garbage collector filled."""

    role: Int64s  # (R,)
    own_ns: Int64s  # (R, K)
    parts_ns: dict[str, Int64s]  # COMPONENTS -> (R, K)
    host_ns: Int64s  # (R, K): the host's own time, also what its device hides; 0 where it was not recorded
    host_parts_ns: dict[str, Int64s]  # the same by COMPONENTS, without busy
    pause_ns: Int64s  # (R, K): the two longest gaps
    quiet_ns: Int64s  # (R, K): of them without anything on the host
    work: Floats  # (R, K): of its kernels at its own usual pace, ns; nan where unsaid
    clock_megahertz: Floats  # (R, K), nan where unsaid
    # (R, K), nan where unsaid: the training thread on a core, and ready to run without one
    ran_ns: Floats = field(default_factory=_unsaid)
    waited_ns: Floats = field(default_factory=_unsaid)
    others_waited_ns: Floats = field(default_factory=_unsaid)  # (R, K): all other threads of its process, summed
    involuntary_switches: Floats = field(default_factory=_unsaid)
    cores: Sequence[CoreWaits] = ()  # (R,), or empty
    operators: Sequence[Sequence[OperatorUse]] = ()  # (R,), or empty
    signatures: Sequence[Sequence[Signature]] = ()  # (R,), or empty
    late_with_host: Int64s = field(default_factory=lambda: np.full((), -1))  # (R,): its host, where nearly all are; -1
    on_host: bool = False  # all ranks are CPU-only: what the training thread does is the work

    def peers(self, rank: int) -> Int64s:
        """The other ranks of its role, without those that are late with their host: they would be the measure of it."""
        same = np.flatnonzero((self.role == self.role[rank]) & (self.late_with_host < 0))
        return np.asarray(same[same != rank])

    def sampled(self) -> Bools | None:
        """The iterations in which all training threads were sampled, shape (K,); None where these are too few."""
        samples = [values for values in (self.ran_ns, self.waited_ns) if values.shape == self.own_ns.shape]
        known: Bools = np.asarray(np.isfinite(samples).all(axis=(0, 1)) if samples else np.zeros(1, np.bool_))
        return known if known.sum() >= FEW_ITERATIONS else None

    def blocked_ns(self) -> Floats | None:
        """Own time in which the training thread neither ran nor waited for a core, shape (R, K).

        nan in iterations that were not sampled; None where ranks have devices, or nothing was sampled.
        """
        if not (self.on_host and self.waited_ns.shape == self.ran_ns.shape == self.own_ns.shape):
            return None
        return np.asarray(np.maximum(self.own_ns - self.waited_ns - self.ran_ns, 0.0))


def among_all(late: Bools, known: Bools) -> Bools:
    """Among all iterations, shape (K,), those that are late of the n known ones, shape (n,)."""
    found = np.zeros(len(known), np.bool_)
    found[known] = late
    return found


def tabulate(replay: Replay, role: Int64s) -> OwnTime:
    """The table of a replay's ranks."""
    ranks, count = len(replay.matched.ranks), len(replay.matched.iterations)
    layout = replay.layout
    inside = (replay.iteration >= 0) & replay.is_captured
    cell = (layout.rank[inside], replay.iteration[inside])

    def add(values: Int64s) -> Int64s:
        table = np.zeros((ranks, count), np.int64)
        np.add.at(table, cell, values[inside])
        return table

    own = add(replay.segment_ns)
    parts = {name: add(replay.parts_ns[name]) for name in ("busy", "data", "collection")}
    parts["host"] = np.maximum(own - sum(parts.values()), 0)
    host = add(replay.host_ns)
    host_parts = {name: add(values) for name, values in replay.host_parts_ns.items()}
    host_parts["host"] = np.maximum(host - sum(host_parts.values()), 0)
    pause, quiet = np.zeros((ranks, count), np.int64), np.zeros((ranks, count), np.int64)
    pauses, silences = replay.parts_ns["pause"], replay.parts_ns["quiet"]
    order = np.lexsort((-pauses, replay.iteration, layout.rank))
    turn = _turns(layout.rank[order], replay.iteration[order])
    longest = order[(turn < 2) & inside[order]]
    np.add.at(pause, (layout.rank[longest], replay.iteration[longest]), pauses[longest])
    np.add.at(quiet, (layout.rank[longest], replay.iteration[longest]), silences[longest])
    return OwnTime(
        role, own, parts, host, host_parts, pause, quiet,
        work=_by_iteration(replay, lambda one: one.work),
        clock_megahertz=_by_iteration(replay, lambda one: one.clock_megahertz),
        ran_ns=_by_iteration(replay, lambda one: one.cores.ran_ns),
        waited_ns=_by_iteration(replay, lambda one: one.cores.waited_ns),
        others_waited_ns=_by_iteration(replay, lambda one: one.cores.others_waited_ns),
        involuntary_switches=_by_iteration(replay, lambda one: one.cores.involuntary_switches),
        cores=[one.cores for one in replay.matched.ranks],
        operators=[_operators_of(one, count) for one in replay.matched.ranks],
        signatures=[_signatures_of(one, count) for one in replay.matched.ranks],
        late_with_host=np.full(ranks, -1),
        on_host=all(one.kind == "cpu" for one in replay.matched.ranks),
    )  # fmt: skip


def _operators_of(one: RankOperations, iterations: int) -> Sequence[OperatorUse]:
    """As in so many iterations: one more in a rank's window means more calls, and no more work."""
    if len(one.iterations) == iterations:
        return one.operators
    share = iterations / len(one.iterations)
    return [
        msgspec.structs.replace(use, count=round(share * use.count), time_ns=round(share * use.time_ns))
        for use in one.operators
    ]


def _signatures_of(one: RankOperations, iterations: int) -> Sequence[Signature]:
    """As in so many iterations."""
    if len(one.iterations) == iterations:
        return one.signatures
    share = iterations / len(one.iterations)
    return [msgspec.structs.replace(kernel, count=round(share * kernel.count)) for kernel in one.signatures]


def _turns(rank: Int64s, iteration: Int64s) -> Int64s:
    """0, 1, 2, ... within each run of one rank and iteration."""
    numbers = np.arange(len(rank))
    begins = np.ones(len(rank), np.bool_)
    begins[1:] = (rank[1:] != rank[:-1]) | (iteration[1:] != iteration[:-1])
    return np.asarray(numbers - np.maximum.accumulate(np.where(begins, numbers, 0)))


def _by_iteration(replay: Replay, values_of: Callable[[RankOperations], Sequence[float | None]]) -> Floats:
    matched = replay.matched
    table = np.full((len(matched.ranks), len(matched.iterations)), np.nan)
    for number, one in enumerate(matched.ranks):
        values = values_of(one)
        columns = one.columns
        if len(values) != len(one.iterations):
            continue
        known = (columns.iteration >= 0) & (matched.iteration[number] >= 0)
        for at, common in {
            *zip(columns.iteration[known].tolist(), matched.iteration[number][known].tolist(), strict=True)
        }:
            value = values[at]
            table[number, common] = np.nan if value is None else value
    return table
