"""Reads what truth/annotated.py wrote: which label held when, in one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

# In the order of annotated.LABELS; the first is time that no annotation covers.
LABELS = ("", "data_loading", "forward", "loss", "backward", "zero_grad", "optimizer")


@dataclass(frozen=True)
class StampedTruth:
    """`labels[i]` holds from `at_ns[i]` (Unix ns, ascending) up to `at_ns[i + 1]`; numbers of LABELS.

    `waited_ns[i]`: for how long the thread waited for a core meanwhile; 0 for the last.
    """

    at_ns: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    waited_ns: npt.NDArray[np.int64]


def read_truth(folder: Path, pid: int) -> StampedTruth:
    """The annotations of a process. Raises OSError where it wrote none."""
    words = np.fromfile(folder / f"{pid}.stamps", np.int64).reshape(-1, 3)
    words = words[words[:, 0] > 0]
    return StampedTruth(words[:, 0], words[:, 1], np.diff(words[:, 2], append=words[-1:, 2]))
