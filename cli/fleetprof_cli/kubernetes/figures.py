"""The figures of jobs now, asked of the operator through the API server's proxy, with the person's own rights.

Two rights, both in the chart's Role `fleetprof-top`: `get` on `services/proxy` of the Service, which leads people
there, and `create` on `serviceaccounts/token` of the account of the same name, whose token the operator asks for.
Without the second nobody is told anything, whatever they reach. The token lives ten minutes and is good for figures
alone.
"""

import asyncio
import time
from typing import Final
from urllib.parse import urlencode

import msgspec
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_api.telemetry.figures import AUDIENCE, HEADER, FleetFigures
from fleetprof_operator.kubernetes.cluster import Cluster

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure

SYSTEM_NAMESPACE: Final = "fleetprof-system"
SERVICE: Final = "fleetprof-top"
_PORT: Final = "http"
_TRIES: Final = 10  # a replica that stands by has no figures, and the proxy takes any of them
_PAUSE_S: Final = 0.1
_TOKEN_S: Final = 600  # the least that Kubernetes gives
_RENEW_AFTER_S: Final = 480.0


class FiguresReader:
    """The operator's Service (and account) `service` in `system_namespace`, asked again and again."""

    def __init__(self, cluster: Cluster, *, system_namespace: str, service: str) -> None:
        self._cluster = cluster
        self._namespace = system_namespace
        self._service = service
        self._token = ""
        self._made_at = 0.0

    async def read(self, namespace: str, workload: str) -> FleetFigures:
        """The figures of a namespace, "" for all; of one workload with its ranks.

        Raises Failure, ApiRefused, ApiUnreachable.
        """
        query = urlencode({"namespace": namespace, "workload": workload})
        path = f"/api/v1/namespaces/{self._namespace}/services/{self._service}:{_PORT}/proxy/figures?{query}"
        for tries in range(_TRIES):
            if tries:
                await asyncio.sleep(_PAUSE_S)
            try:
                headers = {HEADER: await self._find_token()}
                return msgspec.convert(await self._cluster.get(path, headers=headers), FleetFigures)
            except ApiRefused as refusal:
                if refusal.status != 503:
                    raise self._explain(refusal) from None
            except msgspec.ValidationError:
                break
        raise Failure(
            f"no operator answers behind the service {self._namespace}/{self._service}",
            next_step="is it there? kubectl get pods -n "
            f"{self._namespace} -l app.kubernetes.io/component=operator; else name it: --system-namespace, --service",
            code=ExitCode.NO_HUB,
        )

    async def _find_token(self) -> str:
        now = time.monotonic()
        if not self._token or now - self._made_at > _RENEW_AFTER_S:
            path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{self._service}/token"
            spec = {"audiences": [AUDIENCE], "expirationSeconds": _TOKEN_S}
            token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            self._token, self._made_at = str((await self._cluster.create(path, token_request))["status"]["token"]), now
        return self._token

    def _explain(self, refusal: ApiRefused) -> Failure | ApiRefused:
        if refusal.status in (401, 403):
            return Failure(
                str(refusal),
                next_step=f"an administrator can bind you the Role fleetprof-top in {self._namespace} "
                "(docs/rbac-and-s3.md); the web UI shows your own namespaces without it",
                code=ExitCode.REFUSED,
            )
        if refusal.status == 404:
            return Failure(
                f"there are no figures behind {self._namespace}/{self._service}: {refusal}",
                next_step="where is fleetprof installed? --system-namespace, --service; before 0.1.0 there are none",
                code=ExitCode.REFUSED,
            )
        return refusal
