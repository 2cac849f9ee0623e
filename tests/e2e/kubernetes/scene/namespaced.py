"""A release for one namespace: no cluster role, no webhook; manifests get the sidecar by `fleetprof inject`."""

import base64
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml
from cluster.images.building import our_name, version
from cluster.places import ROOT

from scene.api import Api
from scene.training import Training

RELEASE = "fleetprof"


class NamespacedRelease:
    """The release `fleetprof` in a namespace that it serves."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    def install(self, values: Mapping[str, str], *switches: str) -> None:
        """`helm install` with these values, as text, and switches; returns when everything is ready."""
        values = {"image.tag": version(), "analyzer.resources.requests.cpu": "100m", **values}
        settings = [word for name, value in values.items() for word in ("--set-string", f"{name}={value}")]
        for switch in ("scope.cluster=false", "crds.enabled=false", "webhook.enabled=false", *switches):
            settings += ["--set", switch]
        chart = str(ROOT / "charts/fleetprof")
        self._api.helm("install", RELEASE, chart, "-n", self.namespace, "--wait", "--timeout", "4m", *settings)

    def uninstall(self) -> None:
        """`helm uninstall`; it may be gone already."""
        self._api.helm("uninstall", RELEASE, "-n", self.namespace, "--wait", "--timeout", "4m", "--ignore-not-found")

    @contextmanager
    def injected(self, training: Training, folder: Path) -> Iterator[Training]:
        """The training with a sidecar of this release, while its ranks train; `folder` takes the hub's authority."""
        manifest = self._inject(yaml.safe_dump_all(training.objects()), folder)
        self._api.kubectl("apply", "-f", "-", document=manifest)
        try:
            training.await_steps()
            yield training
        finally:
            training.remove()

    def _inject(self, manifest: str, folder: Path) -> str:
        """`fleetprof inject`, as docs/install.md says."""
        secret = self._api.get("Secret", f"{RELEASE}-tls", self.namespace)
        assert secret is not None
        authority = folder / "ca.crt"
        authority.write_bytes(base64.b64decode(secret["data"]["ca.crt"]))
        hub = f"{RELEASE}-hub.{self.namespace}.svc:8443"
        program = Path(sys.executable).parent / "fleetprof"
        result = subprocess.run(
            [program, "inject", "-f", "-", "--ca-file", authority, "--hub", hub, "--image", our_name("sidecar")],
            input=manifest,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout
