"""The published peaks of devices: floating-point operations, dense (without structured sparsity), and memory.

Guarantees: a device is known only by its whole name as its driver tells it; a part of a device (MIG) is not known; a
data type that its maker publishes nothing of has no peak. Sources: the makers' data sheets, named in each row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_TERA: Final = 10**12
_A100: Final = "NVIDIA A100 Tensor Core GPU data sheet, 2021"
_H100: Final = "NVIDIA H100 Tensor Core GPU data sheet, 2024"
_H200: Final = "NVIDIA H200 Tensor Core GPU data sheet, 2024"
_BLACKWELL: Final = "NVIDIA Blackwell Architecture Technical Brief, 2024"
_AMPERE: Final = {
    "float64": 9.7,
    "float32": 19.5,
    "tfloat32": 156.0,
    "bfloat16": 312.0,
    "float16": 312.0,
    "int8": 624.0,
}
_HOPPER: Final = {
    "float64": 33.5, "float32": 66.9, "tfloat32": 494.7, "bfloat16": 989.4, "float16": 989.4, "float8": 1978.9,
    "int8": 1978.9,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Peak:
    """A device, by a pattern of its whole name: peaks by data type in TFLOP/s, of its memory in GB/s."""

    name: str
    tera: Mapping[str, float]
    source: str
    memory_gigabytes: int


PEAKS: Final = (
    Peak(
        r"Tesla V100-SXM2-\d+GB", {"float64": 7.8, "float32": 15.7, "float16": 125.0},
        "NVIDIA V100 Tensor Core GPU data sheet, 2020", 900,
    ),
    Peak(
        r"Tesla V100-PCIE-\d+GB", {"float64": 7.0, "float32": 14.0, "float16": 112.0},
        "NVIDIA V100 Tensor Core GPU data sheet, 2020", 900,
    ),
    Peak(r"Tesla T4", {"float32": 8.1, "float16": 65.0, "int8": 130.0}, "NVIDIA T4 data sheet, 2019", 320),
    Peak(r"(?:NVIDIA )?A100-(?:SXM4|PCIE)-40GB", _AMPERE, _A100, 1555),
    Peak(r"NVIDIA A100-SXM4-80GB", _AMPERE, _A100, 2039),
    Peak(r"NVIDIA A100 80GB PCIe", _AMPERE, _A100, 1935),
    Peak(
        r"NVIDIA A30", {"float64": 5.2, "float32": 10.3, "tfloat32": 82.0, "bfloat16": 165.0, "float16": 165.0},
        "NVIDIA A30 Tensor Core GPU data sheet, 2022", 933,
    ),
    Peak(
        r"NVIDIA A10", {"float32": 31.2, "tfloat32": 62.5, "bfloat16": 125.0, "float16": 125.0, "int8": 250.0},
        "NVIDIA A10 Tensor Core GPU data sheet, 2021", 600,
    ),
    Peak(
        r"NVIDIA A40", {"float32": 37.4, "tfloat32": 74.8, "bfloat16": 149.7, "float16": 149.7, "int8": 299.3},
        "NVIDIA A40 data sheet, 2022", 696,
    ),
    Peak(
        r"NVIDIA L4", {"float32": 30.3, "tfloat32": 60.0, "bfloat16": 121.0, "float16": 121.0, "float8": 242.5},
        "NVIDIA L4 Tensor Core GPU data sheet, 2023", 300,
    ),
    Peak(
        r"NVIDIA L40S", {"float32": 91.6, "tfloat32": 183.0, "bfloat16": 362.05, "float16": 362.05, "float8": 733.0},
        "NVIDIA L40S data sheet, 2023", 864,
    ),
    Peak(
        r"NVIDIA L40", {"float32": 90.5, "tfloat32": 90.5, "bfloat16": 181.05, "float16": 181.05, "float8": 362.0},
        "NVIDIA L40 data sheet, 2023", 864,
    ),
    Peak(r"NVIDIA H100(?: 80GB HBM3| SXM5)", _HOPPER, _H100, 3350),
    Peak(r"NVIDIA GH200 (?:480GB|120GB)", _HOPPER, "NVIDIA GH200 Grace Hopper Superchip data sheet, 2024", 4000),
    Peak(
        r"NVIDIA H100 PCIe",
        {
            "float64": 26.0, "float32": 51.0, "tfloat32": 378.0, "bfloat16": 756.0, "float16": 756.0, "float8": 1513.0,
            "int8": 1513.0,
        },
        "NVIDIA H100 Tensor Core GPU data sheet, 2023", 2000,
    ),
    Peak(
        r"NVIDIA H100 NVL",
        {"float64": 30.0, "float32": 60.0, "tfloat32": 417.5, "bfloat16": 835.5, "float16": 835.5, "float8": 1670.5},
        _H100, 3900,
    ),
    Peak(r"NVIDIA H200", _HOPPER, _H200, 4800),
    Peak(
        r"NVIDIA H200 NVL",
        {"float64": 30.0, "float32": 60.0, "tfloat32": 417.5, "bfloat16": 835.5, "float16": 835.5, "float8": 1670.5},
        _H200, 4800,
    ),
    Peak(
        r"NVIDIA B200",
        {"tfloat32": 1125.0, "bfloat16": 2250.0, "float16": 2250.0, "float8": 4500.0, "int8": 4500.0}, _BLACKWELL, 8000,
    ),
    Peak(
        r"NVIDIA GB200",
        {"tfloat32": 1250.0, "bfloat16": 2500.0, "float16": 2500.0, "float8": 5000.0, "int8": 5000.0}, _BLACKWELL, 8000,
    ),
    Peak(
        r"AMD Instinct MI300X(?: OAM)?",
        {"float64": 163.4, "float32": 163.4, "bfloat16": 1307.4, "float16": 1307.4, "float8": 2614.9, "int8": 2614.9},
        "AMD Instinct MI300X accelerator data sheet, 2023", 5300,
    ),
    Peak(
        r"AMD Instinct MI325X(?: OAM)?",
        {"float64": 163.4, "float32": 163.4, "bfloat16": 1307.4, "float16": 1307.4, "float8": 2614.9, "int8": 2614.9},
        "AMD Instinct MI325X accelerator data sheet, 2024", 6000,
    ),
)  # fmt: skip


def find_peak(device_name: str) -> Peak | None:
    """The row of this device, None where there is none."""
    return next((peak for peak in PEAKS if re.fullmatch(peak.name, device_name)), None)


def reach(peak: Peak, flops: Mapping[str, int]) -> float | None:
    """The seconds that the device takes for these operations by data type at its peak; None where one has no peak."""
    if not set(flops) <= set(peak.tera):
        return None
    return sum(count / (peak.tera[kind] * _TERA) for kind, count in flops.items())
