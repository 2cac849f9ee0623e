"""Process groups of a simulated job: whose collectives meet, in the order in which each member posts them."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from harness.traces.simulated.nodes import Meeting
from harness.traces.simulated.shapes import LoopShape, SimulatedFault

_SETUP_US = 6.0


class ProcessGroup:
    """The n-th collective of each member is the same one."""

    def __init__(
        self, name: str, members: Sequence[int], slow: float, noise: float, source: np.random.Generator
    ) -> None:
        self.name, self.members = name, list(members)
        self._slow, self._noise, self._source = slow, noise, source
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
            transfer_us = (usual_us * self._slow + _SETUP_US) * (noise + tail)
            self._meetings.append(Meeting(len(self.members), transfer_us, late))
        return number, self._meetings[number]

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

    def __init__(self, shape: LoopShape, fault: SimulatedFault, seed: int) -> None:
        self._shape, self._fault, self._seed = shape, fault, seed
        self._known: dict[str, ProcessGroup] = {}

    def get(self, name: str, members: Sequence[int]) -> ProcessGroup:
        if name not in self._known:
            source = np.random.default_rng((self._seed, 40, crc32(name.encode())))
            self._known[name] = ProcessGroup(
                name, members, self._slowness(name, members), self._shape.net_noise, source
            )
        return self._known[name]

    def _slowness(self, name: str, members: Sequence[int]) -> float:
        fault = self._fault
        is_slow = fault.kind == "slow_link" and fault.rank in members and name.startswith(fault.groups)
        is_slow = is_slow or (fault.kind == "slow_group" and name in fault.groups)
        return fault.factor if is_slow else 1.0
