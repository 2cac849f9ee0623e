"""Simulated sidecars that speak the hub protocol over a real stream and follow a script; what they are asked for."""

import asyncio
import hashlib
import time
from contextlib import AsyncExitStack
from typing import Any, Protocol

import grpc
import grpc.aio
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import HubStub
from fleetprof_api.process.version import VERSION
from fleetprof_api.request import ProfileRequest, parse_request

TOKEN = "a-token-for-tests"
PATIENCE_S = 60.0
MS = 10**6


class Puts(Protocol):
    """Takes what a grant allows to upload: a PUT to its address; the ETag."""

    def receive(self, url: str, data: bytes) -> str: ...


def make_process(number: int, **fields: Any) -> pb.Process:
    """A trainer with the agent that makes a step every 50 ms and polls every second."""
    now = time.time_ns()
    given: dict[str, Any] = {
        "process_id": f"p{number}",
        "pid": 100 + number,
        "role": pb.TRAINER,
        "rank": number,
        "world_size": 0,
        "rank_source": pb.RANK_AGENT,
        "polls_kineto": True,
        "has_agent": True,
        "device_kind": "cpu",
        "first_seen_unix_ns": now - 60_000 * MS,
        "last_poll_unix_ns": now - 300 * MS,
        "poll_interval_ns": 1000 * MS,
        "step": pb.StepState(step=100, at_unix_ns=now, iteration_ns=50 * MS, steps_per_iteration=1),
    }
    return pb.Process(**(given | fields))


class ScriptedSidecar:
    """Speaks the hub protocol over a real stream; does only what a test tells it."""

    def __init__(
        self, sidecar_id: str, processes: list[pb.Process], name: str = "llama", namespace: str = "team"
    ) -> None:
        self.sidecar_id = sidecar_id
        self.processes = processes
        self.identity = pb.Identity(
            namespace=namespace,
            pod_name=f"pod-{sidecar_id}",
            node_name=f"node-{sidecar_id}",
            workload=pb.Workload(api_version="batch/v1", kind="Job", name=name),
            labels={"app": name},
        )
        self.version = VERSION
        self.held: dict[tuple[str, str], pb.CaptureEvent] = {}
        self.received: list[pb.HubMessage] = []
        self._stack = AsyncExitStack()
        self._news = asyncio.Condition()
        self._writing = asyncio.Lock()

    async def connect(self, port: int, token: str = TOKEN) -> "ScriptedSidecar":
        """Dials and says hello with all that is held; returns after the welcome."""
        self._stack = AsyncExitStack()
        channel = await self._stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        self.call = HubStub(channel).Connect(None, metadata=(("authorization", f"Bearer {token}"),))
        self._stack.callback(self.call.cancel)
        reader = asyncio.create_task(self._read())
        self._stack.push_async_callback(self._end, reader)
        hello = pb.Hello(
            protocol_version=1,
            sidecar_id=self.sidecar_id,
            identity=self.identity,
            processes=self.processes,
            held=self.held.values(),
            version=self.version,
        )
        await self._write(pb.SidecarMessage(hello=hello))
        await self.expect("welcome")
        return self

    async def _write(self, message: pb.SidecarMessage) -> None:
        """Several tasks of a test speak for one sidecar, and a call takes one message at a time."""
        async with self._writing:
            await self.call.write(message)

    async def _end(self, reader: asyncio.Task[None]) -> None:
        self.call.cancel()
        await asyncio.gather(reader, return_exceptions=True)

    async def disconnect(self) -> None:
        await self._stack.aclose()

    async def _read(self) -> None:
        try:
            async for message in self.call:
                async with self._news:
                    self.received.append(message)
                    self._news.notify_all()
        except grpc.aio.AioRpcError:
            pass

    async def expect(self, kind: str) -> Any:
        """The next message of that kind, which is then taken off."""
        found: list[pb.HubMessage] = []

        def there() -> bool:
            found[:] = [m for m in self.received if m.WhichOneof("body") == kind]
            return bool(found)

        async with self._news, asyncio.timeout(PATIENCE_S):
            await self._news.wait_for(there)
            self.received.remove(found[0])
        return getattr(found[0], kind)

    async def say(self, uid: str, process_id: str, rank: int, state: str, **fields: Any) -> None:
        """An event of one rank; it is held until released."""
        number = pb.RankState.Value(state)
        times = {
            f"{name.lower()}_unix_ns": 1000 + value
            for name, value in pb.RankState.items()
            if 0 < value <= number and name != "FAILED"
        }
        event = pb.CaptureEvent(
            capture_id=uid,
            process_id=process_id,
            rank=rank,
            state=number,
            **((times if state != "FAILED" else {}) | fields),
        )
        self.held[uid, process_id] = event
        await self._write(pb.SidecarMessage(event=event))

    async def say_all(self, arm: pb.Arm, state: str, **fields: Any) -> None:
        for order in arm.orders:
            await self.say(arm.capture_id, order.process_id, order.rank, state, **fields)

    async def beat(self) -> None:
        await self._write(pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=self.processes)))

    async def ask_upload(
        self, uid: str, order: pb.Order, data: bytes, kind: pb.ObjectKind.ValueType = pb.TRACE, **more: Any
    ) -> None:
        parts = [pb.Part(size_bytes=len(data), sha256=hashlib.sha256(data).digest())]
        await self._write(
            pb.SidecarMessage(
                upload_request=pb.UploadRequest(
                    capture_id=uid, process_id=order.process_id, rank=order.rank, object=kind, parts=parts, **more
                )
            )
        )

    async def upload(
        self, store: Puts, uid: str, order: pb.Order, data: bytes, kind: pb.ObjectKind.ValueType = pb.TRACE
    ) -> Any:
        """Asks for a grant until there is one, uploads, reports; the verdict.

        What came too late for an earlier attempt is dropped: each answer after it would be taken for the next one's.
        """
        late = ("upload_grant", "upload_verdict")
        self.received[:] = [message for message in self.received if message.WhichOneof("body") not in late]
        while True:
            await self.ask_upload(uid, order, data, kind)
            grant = await self.expect("upload_grant")
            if not grant.refusal:
                break
            assert grant.retry_after_ns > 0, grant.refusal
            await asyncio.sleep(grant.retry_after_ns / 1e9)
        etags = [store.receive(part.url, data) for part in grant.parts]
        completion = pb.UploadDone(
            capture_id=uid, process_id=order.process_id, object=kind, upload_id=grant.upload_id, etags=etags
        )
        await self._write(pb.SidecarMessage(upload_done=completion))
        return await self.expect("upload_verdict")

    async def deliver(self, store: Puts, arm: pb.Arm) -> None:
        """All of its ranks from ARMED to UPLOADED."""
        for state in ("ARMED", "STARTED", "WRITTEN"):
            await self.say_all(arm, state)
        for order in arm.orders:
            verdict = await self.upload(store, arm.capture_id, order, b"trace %d" % order.rank)
            assert verdict.accepted, verdict.message
        await self.say_all(arm, "UPLOADED")


def make_request(deadline_s: int = 60, target: dict[str, Any] | None = None, **spec: Any) -> ProfileRequest:
    """Five iterations of Job/llama, without a canary unless it is asked for."""
    return parse_request(
        {
            "apiVersion": "fleetprof.io/v1alpha1",
            "kind": "ProfileRequest",
            "spec": {
                "target": target or {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}},
                "window": {"iterations": 5},
                "activeDeadlineSeconds": deadline_s,
                "canary": "Never",
            }
            | spec,
        }
    )
