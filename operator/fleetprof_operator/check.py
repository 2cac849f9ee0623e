"""`fleetprof-operator check`, which `helm test` runs: does the operator serve, and is its store usable?

It reads the Leases, which the operator renews every two seconds and in which it says what is wrong with it. Whether a
Lease is renewed is seen by looking twice, so that no two clocks are compared.

Exit codes: 0 all is well; 1 it is not, and the log says what to do; 2 wrong settings. Right: get of the Leases.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.process.settings import Setting, read_table

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.ownership.lease import LEASE, TROUBLE_ANNOTATION, lease_path, read_holder
from fleetprof_operator.settings import Namespace, OwnerName, name_owner

log = logging.getLogger(__name__)

PATIENCE_S: Final = 120.0
_LOOK_S: Final = 3.0
_EXIT_CODES: Final = "0 all is well; 1 it is not; 2 wrong settings"


def judge(before: Json | None, now: Json, owner: str) -> str:
    """The fault that shows by a Lease as it is and as it was some seconds ago; "" when nothing is."""
    holder = read_holder(now)
    if holder is None:
        return "no operator serves: its /readyz and its log say what it waits for"
    if holder.owner != owner:
        return f"the release {holder.owner} serves here: uninstall one of the two"
    if trouble := (now["metadata"].get("annotations") or {}).get(TROUBLE_ANNOTATION):
        return f"{holder.identity} says: {trouble}"
    if before is None or before["spec"].get("renewTime") == now["spec"].get("renewTime"):
        return f"{holder.identity} does not renew the Lease: it stalls, or is gone"
    return ""


async def check(
    cluster: Cluster, leases: Sequence[str], owner: str, patience_s: float = PATIENCE_S, look_s: float = _LOOK_S
) -> list[str]:
    """The trouble of this release's operator, once it has had a while to begin; empty when there is none."""
    before: dict[str, Json] = {}
    looks = max(2, round(patience_s / look_s))
    for look in range(looks):
        found = []
        for namespace in leases:
            try:
                lease = await cluster.get(lease_path(namespace))
                problem = judge(before.get(namespace), lease, owner)
                before[namespace] = lease
            except (ApiRefused, ApiUnreachable) as error:
                problem = f"it cannot be read: {error}"
            if problem:
                found.append(f"the Lease {namespace}/{LEASE}: {problem}")
        if not found or look == looks - 1:
            return found
        await asyncio.sleep(look_s)
    return []


async def _run(leases: Sequence[str], owner: str) -> int:
    cluster = await Cluster.connect()
    try:
        problems = await check(cluster, leases, owner)
    finally:
        await cluster.close()
    tell: Callable[..., None] = log.error if problems else log.info
    tell("%s", "; ".join(problems) or "the operator serves, and its store takes and gives back what is written")
    return 1 if problems else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """Everything that the check is told from outside."""

    namespace: Namespace
    owner_name: OwnerName = ""
    leases: Annotated[tuple[str, ...], Setting("the namespaces whose Lease the operator holds", metavar="A,B")]


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Checks, and returns the exit code."""
    settings = read_table(
        CheckSettings,
        arguments,
        environment,
        program="fleetprof-operator check",
        description="Does the operator serve?",
        exit_codes=_EXIT_CODES,
    )
    set_up_logging("info")
    return asyncio.run(_run(settings.leases, name_owner(settings.owner_name, settings.namespace)))
