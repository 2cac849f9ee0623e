"""A day of jobs and what policies did about them, made up, beside the captures of the demo: for pictures in the docs.

Nothing of it was measured, and the docs say so. Guarantees: the same picture from the same demo; the demo's own files
stay as they are, for all of it is written into a copy of its store.
"""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fleetprof_api import keys
from fleetprof_api.telemetry.history import POINTS, STEP_NS, NamespaceDay, WorkloadDay, write_day
from fleetprof_store.base import Store

_NAMESPACE: Final = "local"
_DEMO: Final = ("Job", "demo")
_HOUR: Final = 3600 * 10**9
_STARVES_FROM: Final = POINTS - 96  # eight hours before the end
_SEED: Final = 7


def plant_day(store: Store, uid: str, now_unix_ns: int) -> None:
    """Writes the day and the policies; `uid` is the demo's capture, which one of them is said to have made."""
    end_unix_ns = (now_unix_ns // STEP_NS + 1) * STEP_NS
    draw = random.Random(_SEED)  # noqa: S311 the noise of a picture

    def tell(kind: str, name: str, activity: float, rate: float, starves: float = 1.0) -> WorkloadDay:
        """`starves`: what is left of both in its last eight hours."""
        shares = [starves if step >= _STARVES_FROM else 1.0 for step in range(POINTS)]
        busy = [min(1.0, max(0.0, draw.gauss(activity * share, 0.02))) for share in shares]
        rates = [rate * share * draw.lognormvariate(0, 0.03) for share in shares]
        values: dict[str, list[float | None]] = {
            "iteration_seconds": [1 / value for value in rates],
            "iterations_per_second": list(rates),
            "gpu_busy_ratio": [min(1.0, value + 0.1) for value in busy],
            "gpu_sm_active_ratio": list(busy),
            "gpu_power_watts": [150 + 480 * value for value in busy],
            "host_cpu_busy_ratio": [min(1.0, max(0.0, draw.gauss(0.35, 0.02))) for _ in busy],
        }
        return WorkloadDay(kind, name, values)

    jobs = [
        tell(*_DEMO, activity=0.72, rate=4.1, starves=0.3),
        tell("PyTorchJob", "llama-70b", activity=0.81, rate=0.9),
        tell("RayJob", "reward-model", activity=0.07, rate=0.4),
    ]
    store.put(keys.telemetry_day_key(_NAMESPACE), write_day(NamespaceDay(end_unix_ns, jobs)))
    policies = {"version": 1, "policies": [_make_policy(uid, end_unix_ns)]}
    store.put(keys.policies_key(_NAMESPACE), json.dumps(policies).encode())


def list_uids(store_folder: Path) -> list[str]:
    """The captures in a store that is a directory."""
    return [path.parent.name for path in sorted((store_folder / "v1" / _NAMESPACE).glob("*/ledger.json"))]


def _make_policy(uid: str, end_unix_ns: int) -> dict[str, Any]:
    def at(hours_before: float) -> str:
        return datetime.fromtimestamp((end_unix_ns - hours_before * _HOUR) // 10**9, UTC).isoformat()

    def suppress(
        workload: str, trigger: str, reason: str, message: str, times: tuple[int, float, float]
    ) -> dict[str, Any]:
        count, first, last = times
        return {
            "workload": workload,
            "trigger": trigger,
            "reason": reason,
            "message": message,
            "count": count,
            "firstTime": at(first),
            "lastTime": at(last),
        }

    demo = "/".join(_DEMO)
    cause = "the alert FleetprofLowUtilization fires: A job uses little of its GPUs."
    cooldown = "the job was captured 1260 s ago; spec.budget.cooldownSeconds is 7200"
    exempt = 'a pod of the job has the annotation fleetprof.io/alerts: "off"'
    return {
        "name": "starved",
        "spec": {
            "triggers": [
                {"name": "low", "type": "Alert", "alert": {"names": ["FleetprofLowUtilization"]}},
                {"name": "drift", "type": "IterationTimeDrift"},
            ],
            "budget": {"perDay": 4, "cooldownSeconds": 7200},
            "template": {"spec": {"window": {"iterations": 5}, "traces": "Auto"}},
            "mode": "Capture",
        },
        "status": {
            "fired": 14,
            "captured": 1,
            "suppressed": 13,
            "lastFiredTime": at(0.2),
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Watching", "message": "triggers are watched for"}
            ],
            "captures": [
                {
                    "request": "starved-5d0f2c9a41b7e863",
                    "uid": uid,
                    "workload": demo,
                    "trigger": "low",
                    "cause": cause,
                    "firedTime": at(7.6),
                    "result": "Complete",
                    "headline": "Rank 2 holds the job up: it waits for the next batch.",
                }
            ],
            "suppressions": [
                suppress(demo, "drift", "Cooldown", cooldown, (4, 7.2, 5.9)),
                suppress("RayJob/reward-model", "low", "Exempt", exempt, (9, 21, 0.2)),
            ],
        },
    }
