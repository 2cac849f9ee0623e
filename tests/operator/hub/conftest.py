"""A hub on loopback over an in-memory store, and sidecars that follow a script."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import RunningServer, serve
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_store.base import StoreError
from harness.hub.scripted_sidecar import MS, PATIENCE_S, TOKEN, ScriptedSidecar, make_process, make_request
from harness.memory_store import MemoryStore

__all__ = ["MS", "PATIENCE_S", "TOKEN", "ScriptedSidecar", "make_process", "make_request"]

FAST = HubSettings(
    heartbeat_interval_ns=100 * MS,
    look_again_ns=20 * MS,
    gather_ns=300 * MS,
    deaf_patience_ns=300 * MS,
    returning_ns=1000 * MS,
    restate_ns=500 * MS,
    cancel_wait_ns=600 * MS,
    deadline_wait_ns=200 * MS,
    sidecar_lost_ns=60_000 * MS,
    write_interval_ns=10 * MS,
    store_retry_ns=50 * MS,
    store_patience_ns=10_000 * MS,
)


class OutageStore(MemoryStore):
    """The in-memory store, with a plug that can be pulled."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self._calls: Counter[str] = Counter()
        for name in ("put", "get", "open", "list", "delete", "grant_upload", "complete_upload", "abort_upload"):
            setattr(self, name, self._plugged(name, getattr(self, name)))

    def _plugged(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self._calls[name] += 1
            if self.error is not None:
                raise self.error
            return method(*args, **named)

        return call

    def count_calls(self) -> Counter[str]:
        """Calls of each method from now on, by name."""
        self._calls = Counter()
        return self._calls

    def pull_plug(self, message: str = "the store cannot be reached", *, retryable: bool = True) -> None:
        self.error = StoreError(message, retryable=retryable)

    def plug_in(self) -> None:
        self.error = None


class Ground:
    """One store, the hubs that came and went over it, and the sidecars around them."""

    def __init__(self) -> None:
        self.store = OutageStore()
        self.hub: Hub
        self.server: RunningServer
        self.sidecars: list[ScriptedSidecar] = []
        self.analyzed: list[tuple[str, str]] = []
        self.settings = FAST
        self.skew_ns = 0
        self.analyze: Any = self._analyze

    async def _analyze(self, order: AnalysisOrder) -> None:
        self.analyzed.append((order.namespace, order.uid))

    def clock(self) -> int:
        """Real time, which a test may advance."""
        return time.time_ns() + self.skew_ns

    async def start_hub(self, *, fails_fast: bool = False) -> None:
        self.hub = Hub(store=self.store, analyze=self.analyze, settings=self.settings, clock=self.clock)
        await self.hub.restore(fails_fast=fails_fast)
        self.server = await serve(self.hub, "127.0.0.1:0", token=TOKEN)

    async def restart_hub(self) -> None:
        """An orderly end and a new begin."""
        await self.server.stop()
        await self.hub.close()
        await self.start_hub()

    async def kill_hub(self) -> None:
        """As after SIGKILL: nothing is said, nothing is written any more."""
        for task in self.hub.captures.tasks.values():
            task.cancel()
        await self.server.stop(None)
        self.hub._calls.close()

    async def add_sidecar(self, number: int, *processes: pb.Process, **named: Any) -> ScriptedSidecar:
        sidecar = ScriptedSidecar(f"s{number}", list(processes) or [make_process(number)], **named)
        self.sidecars.append(sidecar)
        return await sidecar.connect(self.server.port)

    async def reconnect(self) -> None:
        for sidecar in self.sidecars:
            await sidecar.disconnect()
            await sidecar.connect(self.server.port)

    async def lose(self, sidecar: ScriptedSidecar) -> None:
        """Disconnects; returns when the hub has noted since when, so that its clock may be advanced."""
        await sidecar.disconnect()
        async with asyncio.timeout(PATIENCE_S):
            while any(s.sidecar_id == sidecar.sidecar_id and s.connected_unix_ns for s in await self.hub.fleet()):
                await asyncio.sleep(0.01)

    async def await_fleet(self, fits: Callable[[list[pb.SidecarStatus]], bool]) -> None:
        """Returns when the hub's picture of the fleet fits."""
        async with asyncio.timeout(PATIENCE_S):
            while not fits(await self.hub.fleet()):
                await asyncio.sleep(0.01)

    def heard_now(self) -> dict[str, Any]:
        """The fields of a process that polled, and stepped, just now by the hub's clock."""
        now = self.clock()
        step = pb.StepState(step=100, at_unix_ns=now, iteration_ns=50 * MS, steps_per_iteration=1)
        return {"last_poll_unix_ns": now, "step": step}

    def captures(self, channel: grpc.aio.Channel) -> Any:
        return CapturesStub(channel)

    async def status(self, uid: str) -> pb.CaptureStatus:
        return next(status for status in await self.hub.list() if status.uid == uid)

    async def await_status(self, uid: str, fits: Callable[[pb.CaptureStatus], bool]) -> pb.CaptureStatus:
        """The first status that fits."""
        async with asyncio.timeout(PATIENCE_S):
            async for status in self.hub.watch(uid):
                if fits(status):
                    return status
        raise AssertionError(f"the capture ended as {succeeded(status)} before it fitted: {status}")

    async def await_end(self, uid: str) -> pb.CaptureStatus:
        return await self.await_status(uid, lambda status: status.finished)


def succeeded(status: pb.CaptureStatus) -> tuple[str, str]:
    return condition(status, "Succeeded")


def condition(status: pb.CaptureStatus, kind: str) -> tuple[str, str]:
    return next((c.status, c.reason) for c in status.conditions if c.type == kind)


def states(status: pb.CaptureStatus) -> dict[int, str]:
    """rank → state, or the reason when it failed."""
    return {e.rank: e.reason or pb.RankState.Name(e.state) for e in status.ranks}


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    ground = Ground()
    await ground.start_hub()
    yield ground
    ground.store.plug_in()
    for sidecar in ground.sidecars:
        await sidecar.disconnect()
    await ground.server.stop()
    await ground.hub.close()


@pytest.fixture
def kit() -> Any:
    """This module's helpers, for tests (importlib mode gives them no import path)."""
    import sys

    return sys.modules[__name__]
