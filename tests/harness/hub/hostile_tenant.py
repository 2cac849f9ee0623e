"""The attacks of a tenant with some pods to a hub, all of it at once, as fast as it goes: for the others' tests.

    python hostile_tenant.py PORT CA_FILE HUB_NAME SECONDS

Its tokens are good for forty pods of namespace `evil`. Prints how often it did what. Loopback only; ends by itself, or
at SIGTERM.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import grpc.aio
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import HubStub

PODS = 40
STREAMS = 400
GUESSES = 60
TEXT = "x" * 250

counts: Counter[str] = Counter()


class Hostile:
    def __init__(self, port: str, ca_file: str, name: str) -> None:
        self._target = f"127.0.0.1:{port}"
        self._credentials = grpc.ssl_channel_credentials(Path(ca_file).read_bytes())
        self._options = [
            ("grpc.ssl_target_name_override", name),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", 8 << 20),
            ("grpc.enable_retries", 0),
        ]

    def dial(
        self, channel: grpc.aio.Channel, token: str
    ) -> grpc.aio.StreamStreamCall[pb.SidecarMessage, pb.HubMessage]:
        return HubStub(channel).Connect(None, metadata=(("authorization", f"Bearer {token}"),))

    def channel(self) -> grpc.aio.Channel:
        return grpc.aio.secure_channel(self._target, self._credentials, options=self._options)

    # ------------------------------------------------------------ what it does

    async def rotate_ids(self, pod: int) -> None:
        """A hello that is as large as may be, each time under another name."""
        async with self.channel() as channel:
            call = self.dial(channel, f"evil/e{pod}")
            await call.write(hello(pod, f"s{time.monotonic_ns()}", make_processes(900)))
            await call.read()
            counts["hellos"] += 1
            await asyncio.sleep(0.02)

    async def open_streams(self, pod: int) -> None:
        """As many streams as there are, silent."""
        async with self.channel() as channel:
            calls = [self.dial(channel, f"evil/e{pod}") for _ in range(STREAMS // 4)]
            counts["streams"] += len(calls)
            reads = asyncio.gather(*(call.read() for call in calls), return_exceptions=True)
            await asyncio.wait([reads], timeout=5)

    async def beat_hard(self, pod: int) -> None:
        """The largest heartbeats, without a pause."""
        async with self.channel() as channel:
            call = self.dial(channel, f"evil/e{pod}")
            await call.write(hello(pod, f"b{pod}", []))
            message = pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=make_processes(900)))
            while True:
                await call.write(message)
                counts["heartbeats"] += 1

    async def bomb(self, pod: int) -> None:
        """Bytes that become a hundred times as much when decoded."""
        async with self.channel() as channel:
            call = self.dial(channel, f"evil/e{pod}")
            await call.write(pb.SidecarMessage(hello=pb.Hello(held=[pb.CaptureEvent()] * 400_000)))
            counts["bombs"] += 1
            await call.read()

    async def claim(self, pod: int) -> None:
        """Events of captures that are nobody's, which are all answered, and nothing is read."""
        async with self.channel() as channel:
            call = self.dial(channel, f"evil/e{pod}")
            await call.write(hello(pod, f"c{pod}", []))
            event = pb.CaptureEvent(capture_id="c" * 128, process_id="p", rank=1, state=pb.UPLOADED)
            while True:
                await call.write(pb.SidecarMessage(event=event))
                counts["claims"] += 1

    async def guess(self, pod: int) -> None:
        """Words that are no tokens."""
        async with self.channel() as channel:
            for _ in range(4):
                calls = [self.dial(channel, os.urandom(12).hex()) for _ in range(GUESSES // 4)]
                await asyncio.gather(*(call.read() for call in calls), return_exceptions=True)
                counts["guesses"] += len(calls)


def hello(pod: int, sidecar_id: str, processes: list[pb.Process]) -> pb.SidecarMessage:
    identity = pb.Identity(namespace="evil", pod_name=f"e{pod}", pod_uid=f"u-e{pod}")
    return pb.SidecarMessage(
        hello=pb.Hello(protocol_version=1, sidecar_id=sidecar_id, identity=identity, processes=processes)
    )


def make_processes(count: int) -> list[pb.Process]:
    return [pb.Process(process_id=f"p{n}", torch_version=TEXT, polls_kineto=True) for n in range(count)]


async def repeat(act: Callable[[int], Awaitable[None]], pod: int) -> None:
    while True:
        with contextlib.suppress(grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            await act(pod)
        await asyncio.sleep(0.01)


async def main(port: str, ca_file: str, name: str, seconds: float) -> None:
    hostile = Hostile(port, ca_file, name)
    acts = [hostile.rotate_ids] * 8 + [hostile.beat_hard] * 20 + [hostile.claim] * 4 + [hostile.bomb] * 2
    acts += [hostile.open_streams] * 4 + [hostile.guess] * 2
    tasks = [asyncio.create_task(repeat(act, pod)) for pod, act in enumerate(acts[:PODS])]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))
