"""The cluster made of processes, where there is no container engine; root, Linux and Go make it. One node, or two.

Guarantees: `up` on a running cluster does nothing; on what a killed run left it cleans first; `down` can be repeated,
and leaves the images to the next cluster.
"""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import kubernetes

from cluster.images.base import ensure_base
from cluster.images.building import build_pause
from cluster.images.tools import Buildah
from cluster.local import control_plane, network, node, policy_engine, processes, second_node
from cluster.local.addresses import Addresses, choose_addresses, load_addresses
from cluster.local.kept_images import KeptImages
from cluster.places import AUDIT_LOG, KUBECONFIG, RUN, TORCH
from cluster.programs import binaries, debian
from cluster.progress import step
from cluster.refusal import ClusterFailure, NoCluster

_ADDRESSES: Final = RUN / "addresses.json"
_COMPLETE: Final = RUN / "complete"
_PARTS: Final = (*control_plane.PARTS, "containerd", "kubelet", "kube-proxy", "coredns")


class LocalCluster:
    """etcd, API server, controllers, containerd, kubelet, kube-proxy and CoreDNS."""

    kubeconfig = KUBECONFIG
    audit_log: Path | None = AUDIT_LOG
    torch_folder = TORCH

    def __init__(self) -> None:
        if os.geteuid() != 0:
            raise NoCluster(
                "no container engine answers, and the local cluster needs root: run as root, start Docker, "
                "or name a cluster with KUBECONFIG and E2E_CLUSTER=current"
            )

    @property
    def tool(self) -> Buildah:
        """Builds the images, with their base at hand."""
        debian.install()
        buildah = Buildah()
        ensure_base(buildah)
        return buildah

    def is_up(self) -> bool:
        """Tells whether a whole cluster runs."""
        return _COMPLETE.is_file() and all(processes.is_running(RUN, part) for part in _PARTS)

    def build(self) -> None:
        """Builds and installs the programs that are missing."""
        debian.install()
        binaries.build()

    def up(self) -> None:
        """Returns when the node is ready and names resolve."""
        if self.is_up():
            return
        self.build()
        self.down()
        addresses = choose_addresses()
        node.check(node.describe_first(addresses))
        RUN.mkdir(parents=True, mode=0o755)
        addresses.save(_ADDRESSES)
        with step("starting the cluster"):
            self._start(addresses)
        _COMPLETE.touch()

    def down(self) -> None:
        """Stops it and removes everything of it but what was built, images among that."""
        if not RUN.exists():
            return
        _COMPLETE.unlink(missing_ok=True)
        addresses = load_addresses(_ADDRESSES) if _ADDRESSES.is_file() else None
        policy_engine.stop()
        if addresses:
            second_node.stop(addresses)
            first = node.describe_first(addresses)
            if node.stop(first):
                KeptImages().put_away(first.images)
        network.stop(addresses)
        control_plane.stop()
        shutil.rmtree(RUN)

    def load(self, archive: Path) -> None:
        """Imports an image into the first node."""
        node.ctr(node.describe_first(load_addresses(_ADDRESSES)), "images", "import", archive)

    def add_node(self, images: Sequence[str]) -> str:
        """A second node with these images, for pods that bear its taint; its name, when it is ready."""
        addresses = load_addresses(_ADDRESSES)
        with step("starting a second node"):
            second = second_node.start_network_and_containerd(addresses)
            buildah = Buildah()
            for name in (node.PAUSE_IMAGE, *images):
                archive = second.folder / "image.tar"
                buildah.export(name, archive)
                node.ctr(second, "images", "import", archive)
                archive.unlink()
            second_node.start(addresses, second)
            _await_node(kubernetes.config.new_client_from_config(str(KUBECONFIG)), second)
        return second.name

    def remove_node(self) -> None:
        """Ends the second node; its pods must be gone."""
        addresses = load_addresses(_ADDRESSES)
        second_node.stop(addresses)
        core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(KUBECONFIG)))
        core.delete_node(second_node.describe_second(addresses).name)

    def enforce_policies(self) -> None:
        """From now on network policies count."""
        policy_engine.start(load_addresses(_ADDRESSES))

    def ignore_policies(self) -> None:
        """As before."""
        policy_engine.stop()

    @property
    def api_port(self) -> int:
        """The API server's, which pods reach once the Service's address is translated."""
        return load_addresses(_ADDRESSES).ports["api"]

    def _start(self, addresses: Addresses) -> None:
        first = node.describe_first(addresses)
        KeptImages().bring_back(first.images)
        node.start_containerd(first)
        if node.PAUSE_IMAGE not in node.ctr(first, "images", "list", "--quiet").splitlines():
            self._load_pause()
        control_plane.start(addresses)
        node.start_kubelet(first)
        network.start(addresses, first)
        api = kubernetes.config.new_client_from_config(str(KUBECONFIG))
        for each in network.dns_objects(addresses):
            kubernetes.utils.create_from_dict(api, each)
        _await_node(api, first)

    def _load_pause(self) -> None:
        buildah = Buildah()
        if not buildah.identity(node.PAUSE_IMAGE):
            build_pause(buildah, node.PAUSE_IMAGE)
        archive = RUN / "pause.tar"
        buildah.export(node.PAUSE_IMAGE, archive)
        self.load(archive)
        archive.unlink()


def _await_node(api: Any, awaited: node.ClusterNode) -> None:
    core: Any = kubernetes.client.CoreV1Api(api)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for each in core.list_node(field_selector=f"metadata.name={awaited.name}").items:
            if any(c.type == "Ready" and c.status == "True" for c in each.status.conditions or []):
                return
        time.sleep(0.2)
    raise ClusterFailure(f"the node {awaited.name} is not Ready after two minutes; see {awaited.folder}/kubelet.log")
