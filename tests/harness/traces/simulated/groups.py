"""Process groups of a simulated job: whose collectives meet, in the order in which each member posts them."""

import math
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from harness.traces.simulated.nodes import Meeting
from harness.traces.simulated.shapes import LoopShape, SimulatedFault, of_run

_SETUP_US = 6.0
_PAIRS = ("p2p", "forward", "backward")
_SHARDS = "shard"  # gathers and scatters always run as rings


class ProcessGroup:
    """The n-th collective of each member is the same one."""

    def __init__(
        self, name: str, members: Sequence[int], shape: LoopShape, slow: float, source: np.random.Generator
    ) -> None:
        self.name, self.members = name, list(members)
        self._shape, self._slow, self._noise, self._source = shape, slow, shape.net_noise, source
        self._posted = dict.fromkeys(members, 0)
        self._meetings: list[Meeting] = []

    def meet(self, rank: int, usual_us: float) -> tuple[int, Meeting]:
        """(its number in the group, the meeting) of the rank's next collective."""
        number = self._posted[rank]
        self._posted[rank] += 1
        if number == len(self._meetings):
            noise = float(np.exp(self._source.normal(0, self._noise)))
            tail = float(self._source.exponential(0.5)) if self._source.random() < 0.01 else 0.0
            late = (1.5 * self._source.random(len(self.members))).tolist()
            sent_us, hops_us = self._of_members(usual_us)
            transfer_us = (sent_us * self._slow + _SETUP_US + hops_us) * (noise + tail)
            self._meetings.append(Meeting(len(self.members), transfer_us, late))
        return number, self._meetings[number]

    def _of_members(self, usual_us: float) -> tuple[float, float]:
        """(what is sent, latency); a pair has neither."""
        size, hop_us = len(self.members), self._shape.hop_us
        algorithm = "" if self.name.startswith(_PAIRS) else self._shape.algorithm
        if algorithm == "ring" or (algorithm and self.name.startswith(_SHARDS)):
            return usual_us * (size - 1) / size, (size - 1) * hop_us
        if algorithm == "tree":
            return usual_us, 2 * math.log2(size) * hop_us
        return usual_us, 0.0

    def describe(self, collective: str, rank: int, elements: int) -> dict[str, Any]:
        """A kernel's words of its collective."""
        peers = [member for member in self.members if member != rank]
        pair = {"send": {"Dst Rank": peers[0]}, "recv": {"Src Rank": peers[0]}} if len(peers) == 1 else {}
        return {
            "Collective name": collective, "In msg nelems": elements, "Out msg nelems": elements, "dtype": "BFloat16",
            "Group size": len(self.members), "Process Group Name": self.name, "Process Group Description": "",
            "Process Group Ranks": str(self.members), **pair.get(collective, {}),
        }  # fmt: skip


class ProcessGroups:
    """The groups of one job, made when first asked for; links may be slow."""

    def __init__(self, shape: LoopShape, fault: SimulatedFault, seed: int, run: int = 0) -> None:
        self._shape, self._fault, self._seed, self._run = shape, fault, seed, run
        self._known: dict[str, ProcessGroup] = {}

    def get(self, name: str, members: Sequence[int]) -> ProcessGroup:
        if name not in self._known:
            source = np.random.default_rng((self._seed, 40, crc32(name.encode()), *of_run(self._run)))
            self._known[name] = ProcessGroup(name, members, self._shape, self._slowness(name, members), source)
        return self._known[name]

    def _slowness(self, name: str, members: Sequence[int]) -> float:
        fault = self._fault
        is_slow = fault.kind == "slow_link" and fault.rank in members and name.startswith(fault.groups)
        is_slow = is_slow or (fault.kind == "slow_group" and name in fault.groups)
        return fault.factor if is_slow else 1.0
