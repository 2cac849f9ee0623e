"""What jobs do now, asked of the operator through the API server's proxy, with the person's own rights.

The right is `get` on `services/proxy` of one service: the Role `fleetprof-top` of the chart. It leads people there, and
guards nothing from pods that reach the port (docs/security.md); so ranks are told only of jobs that ask for it.
"""

import asyncio
from typing import Final
from urllib.parse import urlencode

import msgspec
from fleetprof_api.telemetry.figures import FleetFigures
from fleetprof_operator.kubernetes.cluster import Refused

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import Connection
from fleetprof_cli.messages import Failure

SYSTEM_NAMESPACE: Final = "fleetprof-system"
SERVICE: Final = "fleetprof-metrics"
_PORT: Final = "http"
_TRIES: Final = 10  # a replica that stands by has no figures, and the proxy takes any of them
_PAUSE_S: Final = 0.1


async def read_figures(
    connection: Connection, *, namespace: str, workload: str, system_namespace: str, service: str
) -> FleetFigures:
    """Those of a namespace, "" for all; of one workload with its ranks. Raises Failure, Refused, Unreachable."""
    query = urlencode({"namespace": namespace, "workload": workload})
    proxy = f"/api/v1/namespaces/{system_namespace}/services/{service}:{_PORT}/proxy/figures?{query}"
    for tries in range(_TRIES):
        if tries:
            await asyncio.sleep(_PAUSE_S)
        try:
            return msgspec.convert(await connection.cluster.get(proxy), FleetFigures)
        except Refused as refusal:
            if refusal.status != 503:
                raise _explain(refusal, system_namespace) from None
        except msgspec.ValidationError:
            break
    raise Failure(
        f"no operator answers behind the service {system_namespace}/{service}",
        next_step="is it there? kubectl get pods -n "
        f"{system_namespace} -l app.kubernetes.io/component=operator; else name it: --system-namespace, --service",
        code=ExitCode.NO_HUB,
    )


def _explain(refusal: Refused, system_namespace: str) -> Failure | Refused:
    if refusal.status == 403:
        return Failure(
            str(refusal),
            next_step=f"an administrator can bind you the Role fleetprof-top in {system_namespace} "
            "(docs/rbac-and-s3.md); the web UI shows your own namespaces without it",
            code=ExitCode.REFUSED,
        )
    if refusal.status == 404:
        return Failure(
            f"there are no figures behind the service of {system_namespace}: {refusal}",
            next_step="where is fleetprof installed? --system-namespace, --service; before 0.1.0 there are none",
            code=ExitCode.REFUSED,
        )
    return refusal
