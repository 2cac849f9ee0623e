"""The time that injection adds to a pod: trivial pods with and without the sidecar, in turns, on a cluster that runs.

    KUBECONFIG=... python bench/cost/pod_start.py --pods 20 --namespace default

Each pod prints the time and ends. Three times are taken, by this machine's clock, so the node must be this machine or
its clock the same: how long the pod's creation takes, when its process begins, and when the pod is seen to have ended.
The interval is a bootstrap over the pairs.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from fleetprof_operator.kubernetes.cluster import Cluster

TRAINER = "localhost/fleetprof-e2e/trainer:1"
ROUNDS = 5000


@dataclass(frozen=True)
class Life:
    """The life of one pod, in seconds from the begin of its creation."""

    created: float
    began: float
    ended: float


def describe_pod(name: str, image: str, *, injected: bool) -> dict[str, Any]:
    """A restricted pod whose process prints the time, in ns, and ends."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": image, "command": ["date", "+%s%N"], "securityContext": security}
    container["imagePullPolicy"] = "IfNotPresent"
    restricted = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "containers": [container], "securityContext": restricted}
    labels = {"fleetprof.io/inject": "true" if injected else "false"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


async def live(cluster: Cluster, path: str, name: str, image: str, *, injected: bool) -> Life:
    """Makes one pod, watches it end, and deletes it."""
    begin = time.time_ns()
    made = await cluster.create(path, describe_pod(name, image, injected=injected))
    created = time.time_ns()
    if bool(made["spec"].get("initContainers")) != injected:
        raise SystemExit(f"{name}: injected is not {injected}: does the webhook run, is the image there?")
    ended = 0
    query = {"fieldSelector": f"metadata.name={name}"}
    async for _, pod in cluster.watch(path, query, made["metadata"]["resourceVersion"]):
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            ended = time.time_ns()
            break
    # The log is no JSON object, but a number is JSON.
    began = int(str(await cluster.get(f"{path}/{name}/log?container=main")))
    await cluster.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})
    return Life((created - begin) / 1e9, (began - begin) / 1e9, (ended - begin) / 1e9)


def bootstrap(differences: list[float]) -> tuple[float, float]:
    """The 95 % interval of their mean."""
    draw = random.Random(1)
    means = sorted(mean(draw.choices(differences, k=len(differences))) for _ in range(ROUNDS))
    return means[int(0.025 * ROUNDS)], means[int(0.975 * ROUNDS)]


async def measure(pods: int, namespace: str, image: str) -> list[tuple[Life, Life]]:
    """(plain, injected), who goes first drawn anew each time; one pair before does not count."""
    cluster = await Cluster.connect()
    path = f"/api/v1/namespaces/{namespace}/pods"
    order = random.Random(7)
    pairs = []
    try:
        for number in range(-1, pods):
            lives: dict[bool, Life] = {}
            for injected in order.sample((False, True), 2):
                name = f"start-{time.time_ns() % 10**10}-{'injected' if injected else 'plain'}"
                lives[injected] = await live(cluster, path, name, image, injected=injected)
            if number >= 0:
                pairs.append((lives[False], lives[True]))
    finally:
        await cluster.close()
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20, help="of each kind")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--image", default=TRAINER, help="with `date` of coreutils")
    given = parser.parse_args()
    pairs = asyncio.run(measure(given.pods, given.namespace, given.image))
    print(f"{len(pairs)} pods each; seconds: mean (median) plain, injected, difference of the means [95 %]")
    for what in ("created", "began", "ended"):
        plain, injected = ([getattr(pair[i], what) for pair in pairs] for i in (0, 1))
        low, high = bootstrap([b - a for a, b in zip(plain, injected, strict=True)])
        print(
            f"{what:8} {mean(plain):.3f} ({median(plain):.3f})  {mean(injected):.3f} ({median(injected):.3f})  "
            f"+{mean(injected) - mean(plain):.3f} [{low:.3f}, {high:.3f}]"
        )


if __name__ == "__main__":
    main()
