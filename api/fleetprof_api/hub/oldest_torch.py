"""The oldest PyTorch that can be captured: in an older one Kineto's daemon mode may crash the job at its start.

The agent keeps the mode out of such a process, and says its version. Source: pytorch#163545, #112389.
"""

import re
from collections.abc import Iterable
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb

OLDEST_TORCH: Final = (2, 10)
TOO_OLD_ADVICE: Final = "use PyTorch 2.10 or later"


def read_release(version: str) -> tuple[int, int]:
    """Its first two numbers; (0, 0) where it does not begin with them."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def is_too_old(version: str) -> bool:
    """Tells whether a PyTorch of this version cannot be captured; one that does not say a release may be."""
    return (0, 0) < read_release(version) < OLDEST_TORCH


def find_too_old(processes: Iterable[pb.Process]) -> str:
    """The versions of the processes that cannot be captured for that reason, for people; empty where there are none."""
    versions = {p.torch_version for p in processes if not p.polls_kineto and is_too_old(p.torch_version)}
    return ", ".join(sorted(versions))
