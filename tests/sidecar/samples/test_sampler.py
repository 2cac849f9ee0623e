"""The samples that are taken while a capture is taken."""

import asyncio
from collections.abc import Iterable

from fleetprof_api.hub import hub_pb2
from fleetprof_sidecar.capture.orders import agent_command, read_terms
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.samples.host import HostSource
from fleetprof_sidecar.samples.sampler import Sampler
from harness.sidecar.orders import ARM, ORDER, trainer_view


def test_profiling_counters_are_read_only_while_a_capture_asks_for_them() -> None:
    counter_flags: list[bool] = []

    class Devices:
        def read(self, now_unix_ns: int, *, counters: bool) -> list[DeviceReading]:
            counter_flags.append(counters)
            return []

    class AlwaysWanted:
        def wants_devices(self) -> bool:
            return True

        def add_devices(self, readings: Iterable[DeviceReading]) -> None:
            pass

    async def sample_once(sampler: Sampler) -> None:
        running = asyncio.create_task(sampler.run())
        reads = len(counter_flags)
        while len(counter_flags) == reads:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def sample() -> None:
        sampler = Sampler(HostSource(), Devices(), AlwaysWanted())
        await sample_once(sampler)
        for capture, collect in (("plain", ["Shapes"]), ("asks", ["DeviceMetrics"])):
            terms = read_terms(hub_pb2.Arm(**{**ARM, "collect": collect}), ORDER, trainer_view())
            assert agent_command(terms)["device_counters"] is (capture == "asks")
            sampler.begin(capture, terms.sample_interval_ns, counters=terms.device_counters)
            await sample_once(sampler)
        sampler.end("asks")
        await sample_once(sampler)

    asyncio.run(sample())
    assert counter_flags == [False, False, True, False]
