"""GPUs as NVIDIA's dcgm-exporter of this node tells them, for what the trainers' agents cannot read themselves.

Guarantees: a GPU's figures are given to a rank by the GPU's own UUID; where a rank's is not known, only by the pod's
name, and only if that pod has one GPU: never a neighbour's. Answers are read within limits; an exporter that does not
answer, or answers something else, costs figures and nothing more. MIG instances, which share a UUID, are left out.
Sources: dcgm-exporter's counters (etc/default-counters.csv), dcgm_fields.h; prometheus-client reads the text.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import urllib3
from prometheus_client.parser import text_string_to_metric_families

log = logging.getLogger(__name__)

EVERY_S: Final = 15.0
"""The exporter's own interval is 30 s, unless it is told otherwise."""
STALE_NS: Final = 60 * 10**9
_CALL_S: Final = 5.0
_MOST_BYTES: Final = 4 << 20
_BLANK: Final = 140737488355328.0
"""DCGM_FP64_BLANK: from here on a value says why there is none; DCGM_INT64_BLANK is larger."""

UNREADABLE: Final = (ValueError, LookupError, AttributeError, TypeError)
"""What prometheus-client raises of text that is none of its format."""

_FREE: Final = "memory_free_bytes"  # only to know all of it

# Field of DCGM: (ours, as in fleetprof_agent.samples.nvml; what one of its units is).
_FIELDS: Final = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilization_permille", 10.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used_bytes", float(1 << 20)),
    "DCGM_FI_DEV_FB_FREE": (_FREE, float(1 << 20)),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_bytes", float(1 << 20)),
    "DCGM_FI_DEV_POWER_USAGE": ("power_milliwatts", 1e3),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_millijoules", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_celsius", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_megahertz", 1.0),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_megahertz", 1.0),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("throttle_reasons", 1.0),  # before DCGM 3.3.6
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle_reasons", 1.0),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected", 1.0),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active_permille", 1e3),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("sm_occupancy_permille", 1e3),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active_permille", 1e3),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active_permille", 1e3),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_sent_bytes_per_s", 1.0),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_received_bytes_per_s", 1.0),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("nvlink_sent_bytes_per_s", 1.0),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("nvlink_received_bytes_per_s", 1.0),
}


@dataclass(slots=True)
class ExportedGpu:
    """One GPU of the node: whose it is, as the exporter says, and its figures by the agent's names."""

    namespace: str = ""
    pod: str = ""
    values: dict[str, int] = field(default_factory=dict)


def read_exposition(text: str) -> dict[str, ExportedGpu]:
    """By UUID. Raises one of UNREADABLE where it is no exposition."""
    lines = (line for line in text.splitlines(keepends=True) if line.startswith("DCGM_FI_"))
    found: dict[str, ExportedGpu] = {}
    for family in text_string_to_metric_families("".join(lines)):
        for sample in family.samples:
            uuid = sample.labels.get("UUID", "")
            ours = _FIELDS.get(sample.name)
            if ours is None or not uuid or sample.labels.get("GPU_I_ID") or not 0 <= sample.value < _BLANK:
                continue
            gpu = found.setdefault(uuid, ExportedGpu())
            gpu.namespace = sample.labels.get("namespace", "") or gpu.namespace
            gpu.pod = sample.labels.get("pod", "") or gpu.pod
            gpu.values[ours[0]] = round(sample.value * ours[1])
    for gpu in found.values():
        free = gpu.values.pop(_FREE, None)
        if free is not None and "memory_used_bytes" in gpu.values:
            gpu.values.setdefault("memory_bytes", gpu.values["memory_used_bytes"] + free)
    return found


class DcgmExporter:
    """Asks while `run` runs and somebody `wants` to know."""

    def __init__(self, url: str, namespace: str, pod: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._url = url
        self._namespace = namespace
        self._pod = pod
        self._clock = clock
        self._http = urllib3.PoolManager(num_pools=1, timeout=_CALL_S, retries=False)
        self._gpus: Mapping[str, ExportedGpu] = {}
        self._at_unix_ns = 0
        self._is_silent = False

    async def run(self, wants: Callable[[], bool]) -> None:
        """Until cancelled."""
        while True:
            if wants():
                await self.ask()
            await asyncio.sleep(EVERY_S)

    async def ask(self) -> None:
        """Reads the figures of now; what cannot be had leaves the figures as they were."""
        try:
            self._gpus = read_exposition(await asyncio.to_thread(self._fetch))
            self._at_unix_ns = self._clock()
        except (urllib3.exceptions.HTTPError, *UNREADABLE) as problem:
            if not self._is_silent:
                log.warning("no figures of GPUs from %s: %s", self._url, problem)
            self._is_silent = True
        else:
            self._is_silent = False

    def find(self, uuid: str) -> tuple[int, Mapping[str, int]] | None:
        """(when, figures) of a rank's GPU; `uuid` "" where it is not known. None: nothing that is fresh."""
        if self._clock() - self._at_unix_ns > STALE_NS:
            return None
        if uuid:
            gpu = self._gpus.get(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
        else:
            ours = [gpu for gpu in self._gpus.values() if (gpu.namespace, gpu.pod) == (self._namespace, self._pod)]
            gpu = ours[0] if len(ours) == 1 and self._pod else None
        return None if gpu is None else (self._at_unix_ns, gpu.values)

    def _fetch(self) -> str:
        with self._http.request("GET", self._url, redirect=False, preload_content=False) as response:
            if response.status != 200:
                raise ValueError(f"it answered {response.status}")
            data = response.read(_MOST_BYTES + 1, decode_content=True)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"it answered with more than {_MOST_BYTES} bytes")
        return data.decode(errors="replace")
