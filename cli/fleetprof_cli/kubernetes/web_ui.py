"""The cluster's web UI at a forwarded port, for the person whose Kubernetes token is brought there.

Guarantees: the token goes through the forwarded port in a header, and on no command line; when the block ends, the
sessions that it opened end as well.
"""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from fleetprof_api.plain_text import make_printable

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace, Connection, connect
from fleetprof_cli.kubernetes.port_forward import Kubectl
from fleetprof_cli.messages import Failure, say

SERVICE: Final = "fleetprof-webui"
PORT: Final = 8770
_PATH: Final = "/session/kubectl"
_HOST: Final = "127.0.0.1"
_SCHEME: Final = "Bearer "
_CALL_S: Final = 20.0
_TOKEN_S: Final = 3600
_MOST_ANSWER: Final = 64 << 10
_NOT_TAKEN: Final = "let it take people in by kubectl: helm upgrade … --set webui.kubectl=true (docs/webui-access.md)"


async def find_token(place: ClusterPlace, account: str) -> str:
    """The person's own token, or one of a service account for which they may ask. Raises Failure."""
    async with connect(place) as connection:
        if account:
            return await _ask_for_token(connection, account)
        token = await connection.client.configuration.get_api_key_with_prefix("BearerToken") or ""
    if not token.startswith(_SCHEME):
        raise Failure(
            "your kubeconfig has no token: it names you by a client certificate, which reaches no further than the API "
            "server",
            next_step="take the token of a service account that may read captures: --service-account NAME -n NAMESPACE "
            "(you need the right to create serviceaccounts/token)",
            code=ExitCode.REFUSED,
        )
    return token.removeprefix(_SCHEME)


async def _ask_for_token(connection: Connection, account: str) -> str:
    path = f"/api/v1/namespaces/{connection.namespace}/serviceaccounts/{account}/token"
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = await connection.cluster.create(path, {**kind, "spec": {"expirationSeconds": _TOKEN_S}})
    return str(answer["status"]["token"])


@contextmanager
def reach_web_ui(place: ClusterPlace, namespace: str, service: str, token: str) -> Iterator[str]:
    """An address that signs in once, while the block runs. Raises Failure."""
    with Kubectl(place, namespace).forward(f"service/{service}", PORT) as port:
        one_time = str(_call("POST", port, token).get("token"))
        try:
            yield f"http://{_HOST}:{port}/#token={one_time}"
        finally:
            try:
                _call("DELETE", port, token)
            except Failure as failure:
                say(f"the web UI was not told that you left ({failure.message}): your session ends with your token")


def _call(method: str, port: int, token: str) -> dict[str, Any]:
    # Itself, since urllib would bring the token to wherever an answer leads.
    connection = http.client.HTTPConnection(_HOST, port, timeout=_CALL_S)
    headers = {"Authorization": _SCHEME + token, "Origin": f"http://{_HOST}:{port}", "X-Fleetprof-Request": "1"}
    try:
        connection.request(method, _PATH, headers=headers)
        answer = connection.getresponse()
        text = answer.read(_MOST_ANSWER)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise _explain(answer.status, text)
        found: dict[str, Any] = json.loads(text) if text else {}
        return found
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Failure(
            f"the web UI does not answer: {make_printable(str(error))}",
            next_step="does it run? kubectl get pods -A -l app.kubernetes.io/component=webui",
            code=ExitCode.NO_HUB,
        ) from None
    finally:
        connection.close()


def _explain(status: int, body: bytes) -> Failure:
    try:
        problem = json.loads(body)
        detail, next_step = str(problem["detail"]), str(problem["next_step"])
    except (ValueError, KeyError, TypeError):
        detail, next_step = f"HTTP status {status}", ""
    if status in (400, 404, 405):  # a service that does not know this way, or this host
        return Failure("the web UI takes nobody in by kubectl", next_step=_NOT_TAKEN, code=ExitCode.REFUSED)
    return Failure(
        f"the web UI refuses: {make_printable(detail)}", next_step=make_printable(next_step), code=ExitCode.REFUSED
    )
