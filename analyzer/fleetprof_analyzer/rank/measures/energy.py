"""The energy that a rank's device took in each iteration, from its samples (docs/measures.md#energy).

Guarantees: pure; one source for all iterations of a rank; null where samples are missing, too far apart, or a counter
began anew in between: nothing is extrapolated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from fleetprof_api.samples import DeviceColumns

from fleetprof_analyzer.trace.trace import Int64s

LONGEST_GAP_NS: Final = 1_000_000_000
_NS_MW_PER_MJ: Final = 1e9
_MOST: Final = 1 << 53
_LATEST_NS: Final = 1 << 62

Source = Literal["counter", "power", "none"]


@dataclass(frozen=True, slots=True)
class Energies:
    """Energy of each iteration, mJ; None where it is not known."""

    millijoules: list[int | None]
    source: Source = "none"

    def mean_mj(self) -> int | None:
        """Mean energy of the iterations whose energy is known."""
        mean = self._mean()
        return None if mean is None else int(mean)

    def per_sample_uj(self, samples_per_iteration: int | None) -> int | None:
        """The rank's part of the energy of a training sample; `samples_per_iteration` counts those of all ranks."""
        mean = self._mean()
        return None if mean is None or not samples_per_iteration else round(1000 * mean / samples_per_iteration)

    def _mean(self) -> float | None:
        known = [value for value in self.millijoules if value is not None]
        return sum(known) / len(known) if known else None


def measure_energy(device: DeviceColumns, start_ns: Int64s, end_ns: Int64s) -> Energies:
    """Energy within [start, end), Unix ns, shapes (n,): the counter's where it covers as many as the power does."""
    counter = _integrate(*_read_counter(device), start_ns, end_ns)
    power = _integrate(*_read_power(device), start_ns, end_ns)
    known_by_counter, known_by_power = (sum(value is not None for value in found) for found in (counter, power))
    if not max(known_by_counter, known_by_power):
        return Energies([None] * len(start_ns))
    if known_by_counter >= known_by_power:
        return Energies(counter, "counter")
    return Energies(power, "power")


Floats = npt.NDArray[np.float64]


def _read_counter(device: DeviceColumns) -> tuple[Int64s, Floats]:
    """Samples where the counter has moved, and the energy from each to the next.

    The driver renews it less often than it is read: a reading like the one before tells no time, nor does the first.
    """
    at, value = _known(device.at_unix_ns, device.energy_millijoules)
    moved = np.flatnonzero(np.diff(value)) + 1
    return at[moved], np.diff(value[moved]).astype(np.float64)


def _read_power(device: DeviceColumns) -> tuple[Int64s, Floats]:
    """Samples with power, and the energy from each to the next by the trapezoid rule."""
    at, value = _known(device.at_unix_ns, device.power_milliwatts)
    return at, (value[1:] + value[:-1]) / 2 * np.diff(at) / _NS_MW_PER_MJ


def _known(at_ns: Sequence[int], values: Sequence[int | None]) -> tuple[Int64s, Int64s]:
    """Times and values that are there and can be, by time; of several at one time the first."""
    both = zip(at_ns, values, strict=False)
    pairs = [(at, value) for at, value in both if value is not None and 0 <= value < _MOST and 0 <= at < _LATEST_NS]
    at, first = np.unique(np.array([at for at, _ in pairs], np.int64), return_index=True)
    return at, np.array([value for _, value in pairs], np.int64)[first]


def _integrate(at: Int64s, energy: Floats, start: Int64s, end: Int64s) -> list[int | None]:
    """The sum of the pieces' energies within each [start, end), a piece in proportion to its part."""
    if len(at) < 2:
        return [None] * len(start)
    usable = (np.diff(at) <= LONGEST_GAP_NS) & (energy >= 0)
    reached = np.concatenate(([0.0], np.cumsum(np.where(usable, energy, 0.0))))
    unusable = np.concatenate(([0], np.cumsum(~usable)))
    # A whole number of pieces that touch [start, end): from the one that holds start to the one before end.
    first = np.clip(np.searchsorted(at, start, side="right") - 1, 0, len(at) - 2)
    last = np.clip(np.searchsorted(at, end, side="left"), 1, len(at) - 1)
    covered = (start >= at[0]) & (end <= at[-1]) & (unusable[last] == unusable[first])
    # Unix ns pass what a float holds exactly: distances to the first sample do not.
    amount = np.interp(end - at[0], at - at[0], reached) - np.interp(start - at[0], at - at[0], reached)
    return [round(value) if there else None for value, there in zip(amount.tolist(), covered.tolist(), strict=True)]
