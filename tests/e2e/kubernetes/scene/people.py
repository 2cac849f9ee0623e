"""People and the identity provider at which they sign in: the harness' small one, in a pod of the web UI's image.

Guarantees: browser and web UI reach it by one address, the cluster's own; the browser comes through a port-forward.
"""

import base64
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from cluster.images.building import our_name
from harness.identity.keys import make_certificate
from harness.identity.provider import CLIENT, SECRET

from scene.api import Api, Object
from scene.namespaces import make_namespace, remove_namespace

NAMESPACE: Final = "e2e-people"
PORT: Final = 8443
HOST: Final = f"people.{NAMESPACE}.svc"
ISSUER: Final = f"https://{HOST}:{PORT}"
_HARNESS: Final = Path(__file__).parents[3] / "harness"
_FILES: Final = ("__init__.py", "waiting.py", "identity/__init__.py", "identity/keys.py", "identity/provider.py")
_SERVE: Final = f"""
from pathlib import Path
from harness.identity.provider import serve
serve({ISSUER!r}, Path("/keys/tls.crt"), Path("/keys/tls.key"), {PORT})
"""


class People:
    """The provider `people` in `e2e-people`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = make_certificate(Path(folder), HOST)
            self._certificate, self._key = certificate.read_text(), key.read_text()

    def start(self) -> None:
        """Returns when it answers."""
        make_namespace(self._api, NAMESPACE)
        self._api.create(*self._objects())
        self._api.kubectl("wait", "--for=condition=Ready", "pod/people", "-n", NAMESPACE, "--timeout=120s")

    def remove(self) -> None:
        """Deletes what was created."""
        remove_namespace(self._api, NAMESPACE)

    def for_the_web_ui(self, namespace: str) -> list[Object]:
        """The settings of the web UI there: whom to trust, and its secret; both are called `people`."""
        metadata = {"name": "people", "namespace": namespace}
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": self._certificate}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"client-secret": SECRET}},
        ]

    def values(self) -> dict[str, str]:
        """The chart's values of them."""
        return {
            "webui.oidc.issuerUrl": ISSUER,
            "webui.oidc.clientId": CLIENT,
            "webui.oidc.clientSecret": "people",
            "webui.identityAuthority": "people",
            "webui.names.groupsClaim": "groups",
            "webui.names.groupsPrefix": "oidc:",
        }

    def forward(self) -> "subprocess.Popen[str]":
        """A way to it for a browser."""
        return self._api.forward(NAMESPACE, "service/people", PORT)

    def _objects(self) -> list[Object]:
        def metadata(name: str) -> Object:
            return {"name": name, "namespace": NAMESPACE, "labels": {"app": "people"}}

        files = {f"file-{at}": (_HARNESS / name).read_text() for at, name in enumerate(_FILES)}
        places = [{"key": f"file-{at}", "path": f"harness/{name}"} for at, name in enumerate(_FILES)]
        keys = {"tls.crt": self._certificate, "tls.key": self._key}
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in keys.items()}
        container = {
            "name": "people",
            "image": our_name("webui"),
            "command": ["python", "-c", _SERVE],
            "env": [{"name": "PYTHONPATH", "value": "/people"}],
            "ports": [{"containerPort": PORT}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "files", "mountPath": "/people"}, {"name": "keys", "mountPath": "/keys"}],
        }
        spec = {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "automountServiceAccountToken": False,
            "containers": [container],
            "volumes": [
                {"name": "files", "configMap": {"name": "files", "items": places}},
                {"name": "keys", "secret": {"secretName": "keys"}},
            ],
        }
        ports = [{"port": PORT}]
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("files"), "data": files},
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("keys"), "data": encoded},
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata("people"), "spec": spec},
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata("people"),
                "spec": {"selector": {"app": "people"}, "ports": ports},
            },
        ]
