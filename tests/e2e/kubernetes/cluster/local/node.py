"""A node: containerd and the kubelet, and everything that they leave on the machine when they go.

The first node is in the machine's own network, a second one in a network namespace (second_node.py).

Guarantees: `stop` leaves no container, shim, mount, network namespace, cgroup or log link of ours, however the last run
ended; every path is below the run's own folder or carries its name.
"""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from cluster.local import processes
from cluster.local.addresses import Addresses
from cluster.local.control_plane import NODE, fetch
from cluster.places import BINARIES, RUN
from cluster.programs.debian import CNI
from cluster.refusal import ClusterFailure, NoCluster

PAUSE_IMAGE: Final = "localhost/fleetprof-e2e/pause:1"
BRIDGE: Final = "fleetprof0"
_CGROUPS: Final = Path("/sys/fs/cgroup")
_LONGEST_SOCKET_PATH: Final = 107


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """`folder` has all its files, `pods` is its pods' range of addresses, `dns` the address that they ask for names.

    `prefix` goes before each of its programs, `cgroup` is where its pods are when that is not the machine's root, and
    `taint` keeps pods away that do not bear it.
    """

    name: str
    folder: Path
    ip: str
    pods: str
    ports: dict[str, int]
    dns: str
    prefix: tuple[str, ...] = ()
    cgroup: str = ""
    taint: str = ""

    @property
    def socket(self) -> Path:
        """containerd's."""
        return self.folder / "containerd.sock"

    @property
    def images(self) -> Path:
        """The place where containerd keeps images, unpacked, and its knowledge of them."""
        return self.folder / "containerd/root"


def describe_first(addresses: Addresses) -> ClusterNode:
    """The node in the machine's own network."""
    return ClusterNode(NODE, RUN, addresses.node_ip, addresses.pods_of(0), addresses.ports, addresses.dns_service)


def ctr(node: ClusterNode, *words: str | Path) -> str:
    """Runs containerd's own client; its output."""
    command = [BINARIES / "ctr", "--address", node.socket, "--namespace", "k8s.io", *words]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ClusterFailure(f"`ctr {' '.join(map(str, words))}` failed: {result.stderr[-1000:]}")
    return result.stdout


def check(node: ClusterNode) -> None:
    """Refuses where a second kubelet would disturb a first, or a path is too long for a socket."""
    if any(_cgroup_processes(node.cgroup)):
        raise NoCluster("another kubelet's pods run on this machine; use E2E_CLUSTER=current with its KUBECONFIG")
    longest = node.folder / "kubelet/pod-resources/kubelet.sock"
    if len(str(longest)) > _LONGEST_SOCKET_PATH:
        raise NoCluster(f"{longest} is too long for a socket: set XDG_CACHE_HOME to a shorter path")


def start_containerd(node: ClusterNode) -> None:
    """Returns when containerd answers."""
    node.folder.mkdir(parents=True, exist_ok=True)
    _write_network(node)
    config = node.folder / "containerd.toml"
    config.write_text(_containerd_config(node))
    command: list[str | Path] = [*node.prefix, BINARIES / "containerd", "--config", config]
    environment = os.environ | {"PATH": f"{BINARIES}:{os.environ['PATH']}"}
    processes.start(node.folder, "containerd", command, environment)
    processes.wait_for(lambda: _containerd_answers(node), "an answer", node.folder, "containerd")


def start_kubelet(node: ClusterNode) -> None:
    """Returns when the kubelet is healthy; wants the API server, and the pause image in containerd."""
    for controller in _controllers() if node.cgroup else ():
        (controller / node.cgroup).mkdir(exist_ok=True)
    config = node.folder / "kubelet.yaml"
    config.write_text(yaml.safe_dump(_kubelet_config(node)))
    command: list[str | Path] = [
        *node.prefix,
        BINARIES / "kubelet",
        f"--config={config}",
        f"--kubeconfig={RUN / f'{node.name}.kubeconfig'}",
        f"--hostname-override={node.name}",
        f"--root-dir={node.folder / 'kubelet'}",
        f"--node-ip={node.ip}",
    ]
    processes.start(node.folder, "kubelet", command)
    health = f"http://{node.ip}:{node.ports['kubelet_health']}/healthz"
    processes.wait_for(lambda: fetch(health, RUN) == b"ok", "health", node.folder, "kubelet")


def stop(node: ClusterNode) -> bool:
    """Stops the kubelet, every container, containerd; then removes what they left.

    True when all of it ended in order, and containerd has nothing but images.
    """
    processes.stop(node.folder, "kubelet")
    in_order = processes.is_running(node.folder, "containerd") and _end_all(node)
    processes.stop(node.folder, "containerd")
    processes.kill_tree(processes.find("containerd-shim-runc-v2", str(node.socket)))
    _unmount(node.folder)
    _remove_links(node)
    _remove_cgroups(node.cgroup)
    return in_order


def _end_all(node: ClusterNode) -> bool:
    """Tells if nothing is left but images; what ends by itself just before it is told to is looked at once more."""
    for _ in range(3):
        with contextlib.suppress(ClusterFailure):
            _end_containers(node)
            _remove_stale_images(node)
            return True
    return False


def _end_containers(node: ClusterNode) -> None:
    for kind, *quiet in (("tasks", "--quiet"), ("containers", "--quiet"), ("sandboxes",), ("leases", "--quiet")):
        lines = ctr(node, kind, "list", *quiet).splitlines()
        found = [line.split()[0] for line in lines[0 if quiet else 1 :]]
        force = ["--force"] if kind in ("tasks", "sandboxes") else []
        if found:
            ctr(node, kind, "delete" if quiet else "remove", *force, *found)


def _remove_stale_images(node: ClusterNode) -> None:
    """Removes images that have lost their name to a newer one, which the kubelet would remove once the disk is full."""
    listed = [line.split()[:3] for line in ctr(node, "images", "list").splitlines()[1:]]
    named = {digest for name, _, digest in listed if not name.startswith("sha256:")}
    stale = [name for name, _, digest in listed if digest not in named]
    if stale:
        ctr(node, "images", "delete", "--sync", *stale)


def _containerd_answers(node: ClusterNode) -> bool:
    try:
        ctr(node, "version")
    except ClusterFailure:
        return False
    return True


def _write_network(node: ClusterNode) -> None:
    # Masquerading is one rule of ours (network.py): the plug-in's own outlives pods that are killed with the machine.
    address_range = {
        "type": "host-local",
        "dataDir": str(node.folder / "pod-addresses"),
        "ranges": [[{"subnet": node.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": address_range}
    folder = node.folder / "cni"
    folder.mkdir(exist_ok=True)
    network = {"cniVersion": "1.0.0", "name": node.name, "plugins": [bridge]}
    (folder / "10-fleetprof.conflist").write_text(json.dumps(network))


def _containerd_config(node: ClusterNode) -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE, as in many virtual machines, every sandbox would fail.
    # stats_collect_period: each second, if not set, all shims are asked what their containers use.
    return f"""version = 3
root = "{node.images}"
state = "{node.folder}/containerd/state"
[grpc]
address = "{node.socket}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
stats_collect_period = "1m"
netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{CNI}"]
conf_dir = "{node.folder}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def _kubelet_config(node: ClusterNode) -> dict[str, object]:
    taint = [{"key": node.taint, "effect": "NoSchedule"}] if node.taint else []
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": node.ports["kubelet"],
        "healthzBindAddress": node.ip,
        "healthzPort": node.ports["kubelet_health"],
        "registerWithTaints": taint,
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "authentication": {
            "x509": {"clientCAFile": str(RUN / "ca.crt")},
            "webhook": {"enabled": True},
            "anonymous": {"enabled": False},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(RUN / f"{node.name}.crt"),
        "tlsPrivateKeyFile": str(RUN / f"{node.name}.key"),
        "clusterDNS": [node.dns],
        "clusterDomain": "cluster.local",
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": str(node.folder / "pod-logs"),
        "volumePluginDir": str(node.folder / "kubelet/volume-plugins"),
        "makeIPTablesUtilChains": False,
        "serializeImagePulls": False,
    }


def _unmount(folder: Path) -> None:
    """Everything mounted below the folder, the deepest first."""
    table = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].replace("\\040", " ") for line in table]
    ours = [point for point in points if point.startswith(f"{folder}/")]
    for point in sorted(ours, key=len, reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)


def _remove_links(node: ClusterNode) -> None:
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{node.folder}/"):
            link.unlink()
    for result in Path("/var/lib/cni/results").glob(f"{node.name}-*"):
        result.unlink()


def _controllers() -> list[Path]:
    """The roots of the machine's control groups: one, or before version 2 one of each controller."""
    if (_CGROUPS / "cgroup.controllers").is_file():
        return [_CGROUPS]
    return [controller for controller in _CGROUPS.iterdir() if not controller.is_symlink()]


def _pods_cgroups(cgroup: str) -> list[Path]:
    candidates = (controller / (cgroup or "kubepods") for controller in _controllers())
    return [folder for folder in candidates if folder.is_dir()]


def _cgroup_processes(cgroup: str) -> list[str]:
    return [
        pid
        for root in _pods_cgroups(cgroup)
        for folder, _, files in os.walk(root)
        if "cgroup.procs" in files
        for pid in Path(folder, "cgroup.procs").read_text().split()
    ]


def _remove_cgroups(cgroup: str) -> None:
    for root in _pods_cgroups(cgroup):
        for folder, _, _ in os.walk(root, topdown=False):
            # One with a process in it is not ours to end.
            with contextlib.suppress(OSError):
                os.rmdir(folder)
