"""The one node: containerd and the kubelet, and everything that they leave on the machine when they go.

Guarantees: `stop` leaves no container, shim, mount, network namespace, cgroup or log link of ours, however the last run
ended; every path is below the run's own folder or carries its name.
"""

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Final

import yaml

from cluster.local import processes
from cluster.local.addresses import Addresses
from cluster.local.control_plane import NODE, fetch
from cluster.places import BINARIES, RUN
from cluster.programs.debian import CNI
from cluster.refusal import Failure, Refusal

SOCKET: Final = RUN / "containerd.sock"
PAUSE_IMAGE: Final = "localhost/fleetprof-e2e/pause:1"
BRIDGE: Final = "fleetprof0"
_NETWORK: Final = "fleetprof-e2e"
_CGROUPS: Final = Path("/sys/fs/cgroup")
_LONGEST_SOCKET_PATH: Final = 107


def ctr(*words: str | Path) -> str:
    """Runs containerd's own client; its output."""
    command = [BINARIES / "ctr", "--address", SOCKET, "--namespace", "k8s.io", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"`ctr {' '.join(map(str, words))}` failed: {done.stderr[-1000:]}")
    return done.stdout


def check() -> None:
    """Refuses where a second kubelet would disturb a first, or a path is too long for a socket."""
    if any(_cgroup_processes()):
        raise Refusal("another kubelet's pods run on this machine; use E2E_CLUSTER=current with its KUBECONFIG")
    longest = RUN / "kubelet/pod-resources/kubelet.sock"
    if len(str(longest)) > _LONGEST_SOCKET_PATH:
        raise Refusal(f"{longest} is too long for a socket: set XDG_CACHE_HOME to a shorter path")


def start_containerd(addresses: Addresses) -> None:
    """Returns when containerd answers."""
    _write_network(addresses)
    config = RUN / "containerd.toml"
    config.write_text(_containerd_config())
    command: list[str | Path] = [BINARIES / "containerd", "--config", config]
    environment = os.environ | {"PATH": f"{BINARIES}:{os.environ['PATH']}"}
    processes.start(RUN, "containerd", command, environment)
    processes.wait_for(_containerd_answers, "an answer", RUN, "containerd")


def start_kubelet(addresses: Addresses) -> None:
    """Returns when the kubelet is healthy; wants the API server, and the pause image in containerd."""
    config = RUN / "kubelet.yaml"
    config.write_text(yaml.safe_dump(_kubelet_config(addresses)))
    command: list[str | Path] = [
        BINARIES / "kubelet",
        f"--config={config}",
        f"--kubeconfig={RUN / 'node.kubeconfig'}",
        f"--hostname-override={NODE}",
        f"--root-dir={RUN / 'kubelet'}",
        f"--node-ip={addresses.node_ip}",
    ]
    processes.start(RUN, "kubelet", command)
    health = f"http://127.0.0.1:{addresses.ports['kubelet_health']}/healthz"
    processes.wait_for(lambda: fetch(health, RUN) == b"ok", "health", RUN, "kubelet")


def stop() -> None:
    """Stops the kubelet, every container, containerd; then removes what they left."""
    processes.stop(RUN, "kubelet")
    if processes.is_running(RUN, "containerd"):
        with contextlib.suppress(Failure):
            _end_containers()
    processes.stop(RUN, "containerd")
    processes.kill_tree(processes.find("containerd-shim-runc-v2", str(SOCKET)))
    _unmount()
    _remove_links()
    _remove_cgroups()


def _end_containers() -> None:
    tasks = ctr("tasks", "list", "--quiet").split()
    if tasks:
        ctr("tasks", "delete", "--force", *tasks)
    containers = ctr("containers", "list", "--quiet").split()
    if containers:
        ctr("containers", "delete", *containers)


def _containerd_answers() -> bool:
    try:
        ctr("version")
    except Failure:
        return False
    return True


def _write_network(addresses: Addresses) -> None:
    # Masquerading is one rule of ours (network.py): the plug-in's own outlives pods that are killed with the machine.
    address_range = {
        "type": "host-local",
        "dataDir": str(RUN / "pod-addresses"),
        "ranges": [[{"subnet": addresses.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": address_range}
    folder = RUN / "cni"
    folder.mkdir(exist_ok=True)
    network = {"cniVersion": "1.0.0", "name": _NETWORK, "plugins": [bridge]}
    (folder / "10-fleetprof.conflist").write_text(json.dumps(network))


def _containerd_config() -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE, as in many virtual machines, every sandbox would fail.
    return f"""version = 3
root = "{RUN}/containerd/root"
state = "{RUN}/containerd/state"
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{CNI}"]
conf_dir = "{RUN}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def _kubelet_config(addresses: Addresses) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": addresses.ports["kubelet"],
        "healthzPort": addresses.ports["kubelet_health"],
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "authentication": {
            "x509": {"clientCAFile": str(RUN / "ca.crt")},
            "webhook": {"enabled": True},
            "anonymous": {"enabled": False},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(RUN / "node.crt"),
        "tlsPrivateKeyFile": str(RUN / "node.key"),
        "clusterDNS": [addresses.dns_service],
        "clusterDomain": "cluster.local",
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": str(RUN / "pod-logs"),
        "volumePluginDir": str(RUN / "kubelet/volume-plugins"),
        "makeIPTablesUtilChains": False,
        "serializeImagePulls": False,
    }


def _unmount() -> None:
    """Everything mounted below the run's folder, the deepest first."""
    table = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].replace("\\040", " ") for line in table]
    ours = [point for point in points if point.startswith(f"{RUN}/")]
    for point in sorted(ours, key=len, reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)


def _remove_links() -> None:
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{RUN}/"):
            link.unlink()
    for result in Path("/var/lib/cni/results").glob(f"{_NETWORK}-*"):
        result.unlink()


def _kubepods() -> list[Path]:
    if (_CGROUPS / "cgroup.controllers").is_file():
        candidates = [_CGROUPS / "kubepods"]
    else:
        candidates = [controller / "kubepods" for controller in _CGROUPS.iterdir() if not controller.is_symlink()]
    return [folder for folder in candidates if folder.is_dir()]


def _cgroup_processes() -> list[str]:
    return [
        pid
        for root in _kubepods()
        for folder, _, files in os.walk(root)
        if "cgroup.procs" in files
        for pid in Path(folder, "cgroup.procs").read_text().split()
    ]


def _remove_cgroups() -> None:
    for root in _kubepods():
        for folder, _, _ in os.walk(root, topdown=False):
            # One with a process in it is not ours to end.
            with contextlib.suppress(OSError):
                os.rmdir(folder)
