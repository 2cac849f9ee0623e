"""A kind cluster, where Docker or Podman answers.

E2E_KIND_IMAGE is the image of its nodes, and so its Kubernetes; kind's own if not set. E2E_KIND_WORKERS is the number
of nodes beside that of the control plane; none if not set.

Guarantees: the cluster carries our name; others are left alone.
"""

import os
import shutil
from pathlib import Path
from typing import Final

import yaml

from cluster.images.tools import ContainerEngine, run
from cluster.places import BINARIES, KUBECONFIG, RUN, TORCH
from cluster.programs import binaries
from cluster.progress import step

_NAME: Final = "fleetprof-e2e"


class KindCluster:
    """kind's cluster of that name; images are loaded into it, and PyTorch's folder is mounted."""

    kubeconfig = KUBECONFIG
    # The API server's audit log stays in kind's node.
    audit_log: Path | None = None
    torch_folder = Path("/fleetprof-torch")

    def __init__(self, engine: ContainerEngine) -> None:
        self.tool = engine
        self._program = shutil.which("kind") or str(BINARIES / "kind")

    def is_up(self) -> bool:
        """Tells whether it runs."""
        return self.kubeconfig.is_file() and _NAME in run(self._program, "get", "clusters").split()

    def build(self) -> None:
        """Builds the programs that are missing."""
        binaries.build(binaries.CLIENTS)
        if not shutil.which("kind") and not Path(self._program).is_file():
            binaries.install(binaries.KIND, BINARIES)

    def up(self) -> None:
        """Returns when the node is ready."""
        self.build()
        if self.is_up():
            return
        self.down()
        RUN.mkdir(parents=True, exist_ok=True)
        TORCH.mkdir(parents=True, exist_ok=True)
        mount = {"hostPath": str(TORCH), "containerPath": str(self.torch_folder), "readOnly": True}
        image = {"image": os.environ["E2E_KIND_IMAGE"]} if os.environ.get("E2E_KIND_IMAGE") else {}
        roles = ["control-plane", *["worker"] * int(os.environ.get("E2E_KIND_WORKERS") or 0)]
        nodes = [{"role": role, "extraMounts": [mount], **image} for role in roles]
        config = RUN / "kind.yaml"
        config.write_text(yaml.safe_dump({"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": nodes}))
        with step("starting a kind cluster"):
            words = ["--name", _NAME, "--config", str(config), "--kubeconfig", str(self.kubeconfig), "--wait", "3m"]
            run(self._program, "create", "cluster", *words)

    def down(self) -> None:
        """Deletes the cluster with its nodes."""
        if Path(self._program).is_file():
            run(self._program, "delete", "cluster", "--name", _NAME)
        shutil.rmtree(RUN, ignore_errors=True)

    def load(self, archive: Path) -> None:
        """Imports an image into every node."""
        run(self._program, "load", "image-archive", str(archive), "--name", _NAME)
