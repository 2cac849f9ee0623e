"""The reasons why a GPU runs slower than it could: masks of NVML's reasons, by the words that metrics and reports use.

Source: `nvmlClocksEventReason*` in nvml.h. An idle GPU and a clock that a user has set are no throttling.
"""

from collections.abc import Mapping
from typing import Final

THROTTLED_BY: Final[Mapping[str, int]] = {
    "power": 0x4,  # SwPowerCap
    "thermal": 0x20 | 0x40,  # SwThermalSlowdown, HwThermalSlowdown
    "hardware": 0x8 | 0x80,  # HwSlowdown, HwPowerBrakeSlowdown
}
