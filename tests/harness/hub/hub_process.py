"""A hub as the operator serves it, a process of its own: TLS, tokens that prove pods, a store in a directory.

    python hub_process.py FOLDER

Writes ca.crt into FOLDER and one JSON line: its port. A token is `NAMESPACE/POD`, or `NAMESPACE/POD/SECONDS` for one
that ends so long after each look at it. On a line `capture NAMESPACE POD` it captures five iterations of that pod, and
prints how that ended, the most memory that it ever had, how late its event loop was since (and how long one callback
held it, in CPU time), and whom it refused. On a line `ranks NAMESPACE` it prints how many trainers it sees, on `calm`
how late the loop was until then, on `refused` whom it refused.
"""

import asyncio
import contextlib
import gc
import json
import socket
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import parse_request
from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.planning.target_pods import Pod, TargetPods
from fleetprof_operator.hub.server import ServerTls, serve
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.storage.uploads import serve_uploads
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_store.directory import DirectoryStore

NAME = "fleetprof-hub.test"
TICK_S = 0.01


class Tokens:
    """Each call costs a turn of the event loop, as a review does."""

    async def authenticate(self, token: str) -> Principal | None:
        await asyncio.sleep(0.001)
        namespace, _, rest = token.partition("/")
        pod, _, seconds = rest.partition("/")
        if not pod:
            return None
        expires = time.time_ns() + int(float(seconds) * 1e9) if seconds else 0
        return Principal(namespace=namespace, pod_name=pod, pod_uid=f"u-{pod}", expires_unix_ns=expires)


def peak_memory_mib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) >> 10


async def note_lag(lags: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK_S)
        lags.append(time.perf_counter() - began - TICK_S)


class Held:
    """The processor time that single callbacks of the event loop took: what of its lag is the hub's own."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.long = 0  # those that took more than 50 ms
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.events.Handle) -> None:
            began = time.thread_time()
            run(handle)
            took = time.thread_time() - began
            self.longest_s = max(self.longest_s, took)
            self.long += took > 0.05

        asyncio.events.Handle._run = timed  # type: ignore[assignment, method-assign]


def describe_lag(lags: list[float], held: Held) -> dict[str, float]:
    ordered = sorted(lags) or [0.0]
    p99 = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    found = {
        "lag_p99_ms": round(1000 * p99, 1),
        "lag_worst_ms": round(1000 * ordered[-1], 1),
        "longest_callback_cpu_ms": round(1000 * held.longest_s, 1),
        "callbacks_over_50_ms_cpu": held.long,
    }
    lags.clear()
    held.longest_s, held.long = 0.0, 0
    return found


async def run(folder: Path) -> None:
    found = renew_certificates(Certificates(), [NAME], datetime.now(UTC))
    (folder / "ca.crt").write_bytes(found.ca_crt)
    store = DirectoryStore(folder / "store", b"x" * 32, "")
    uploads = await serve_uploads(store, socket.create_server(("127.0.0.1", 0)))
    targets: dict[str, TargetPods] = {}
    hub = Hub(
        store=store,
        authenticate=Tokens(),
        find_pods=lambda uid: targets.get(uid, TargetPods(reason="LookingForPods", message="unknown")),
        settings=HubSettings(heartbeat_interval_ns=10**9),
    )
    tls = ServerTls(certificate_chain=found.tls_crt, private_key=found.tls_key)
    server = await serve(hub, "127.0.0.1:0", tls=tls, captures=False)
    lags: list[float] = []
    held = Held()
    beside = asyncio.create_task(note_lag(lags))

    async def capture(namespace: str, pod: str) -> dict[str, object]:
        uid = str(uuid.uuid4())
        targets[uid] = TargetPods(pods={f"u-{pod}": Pod(uid=f"u-{pod}", name=pod, injected=True)})
        spec = {"target": {"selector": {"matchLabels": {"app": pod}}}, "window": {"iterations": 5}}
        request = parse_request(
            {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfileRequest", "metadata": {"name": "c"},
             "spec": {**spec, "activeDeadlineSeconds": 600}}
        )  # fmt: skip
        await hub.adopt(request, namespace=namespace, uid=uid, name="c")
        status = [status async for status in hub.watch(uid)][-1]
        ended = next(c for c in status.conditions if c.type == "Succeeded")
        ranks = [pb.RankState.Name(line.state) for line in status.ranks]
        return {"reason": ended.reason, "message": ended.message, "ranks": ranks}

    print(json.dumps({"port": server.port}), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode().split():
        match line:
            case ["ranks", namespace]:
                there = [s for s in await hub.fleet() if s.identity.namespace == namespace]
                answer: dict[str, object] = {
                    "ranks": sum(p.has_agent and p.step.step > 2 for s in there for p in s.processes)
                }
            case ["refused"]:
                answer = dict(hub.refusals.counts)
            case ["calm"]:
                answer = dict(describe_lag(lags, held))
            case ["capture", namespace, pod]:
                answer = await capture(namespace, pod)
                answer |= {"peak_mib": peak_memory_mib(), "kept_mib": hub.count_kept_bytes() >> 20}
                answer |= {**describe_lag(lags, held), "refused": dict(hub.refusals.counts)}
            case _:
                answer = {"error": "unknown"}
        print(json.dumps(answer), flush=True)
    beside.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await beside
    await server.stop()
    await uploads.close()
    await hub.close()


if __name__ == "__main__":
    gc.freeze()  # as the operator does
    asyncio.run(run(Path(sys.argv[1])))
