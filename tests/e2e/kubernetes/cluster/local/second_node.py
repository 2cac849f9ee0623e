"""A second node on the same machine: in a network namespace of its own, with a cable to the first.

Its pods have addresses of their own, which this machine routes, and Services by a kube-proxy of their own. Pods come
here only when they bear its taint, since not every image is here.

Guarantees: `stop` takes back the namespace, and with it cable, routes and rules.
"""

import shutil
import subprocess
from typing import Final

from cluster.local import network, processes
from cluster.local.addresses import Addresses
from cluster.local.control_plane import SECOND_NODE
from cluster.local.node import ClusterNode, check, start_containerd, start_kubelet
from cluster.local.node import stop as stop_node
from cluster.places import RUN
from cluster.refusal import ClusterFailure

TAINT: Final = "fleetprof.io/second-node"
_NAMESPACE: Final = SECOND_NODE
# The two ends of the cable; a link's name has at most 15 characters.
_HERE: Final = "fleetprof-node2"
_THERE: Final = "eth0"


def describe_second(addresses: Addresses) -> ClusterNode:
    """The node in the namespace."""
    _, ip = addresses.link
    return ClusterNode(
        SECOND_NODE,
        RUN / "second",
        ip,
        addresses.pods_of(1),
        addresses.ports,
        addresses.dns_service,
        prefix=("nsenter", f"--net=/run/netns/{_NAMESPACE}"),
        cgroup=SECOND_NODE,
        taint=TAINT,
    )


def start_network_and_containerd(addresses: Addresses) -> ClusterNode:
    """Returns when images can be loaded; `start` does the rest."""
    node = describe_second(addresses)
    check(node)
    _connect(addresses, node)
    start_containerd(node)
    return node


def start(addresses: Addresses, node: ClusterNode) -> None:
    """Returns when its kubelet is healthy."""
    start_kubelet(node)
    network.start_proxy(addresses, node)


def stop(addresses: Addresses) -> None:
    """Ends it; nothing happens where there is none."""
    node = describe_second(addresses)
    processes.stop(node.folder, "kube-proxy")
    stop_node(node)
    subprocess.run(["ip", "link", "delete", _HERE], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", _NAMESPACE], capture_output=True, check=False)
    shutil.rmtree(node.folder, ignore_errors=True)


def _connect(addresses: Addresses, node: ClusterNode) -> None:
    here, there = addresses.link
    inside = ("ip", "-netns", _NAMESPACE)
    for command in (
        ("ip", "netns", "add", _NAMESPACE),
        ("ip", "link", "add", _HERE, "type", "veth", "peer", "name", _THERE, "netns", _NAMESPACE),
        ("ip", "address", "add", f"{here}/30", "dev", _HERE),
        ("ip", "link", "set", _HERE, "up"),
        (*inside, "address", "add", f"{there}/30", "dev", _THERE),
        (*inside, "link", "set", "lo", "up"),
        (*inside, "link", "set", _THERE, "up"),
        (*inside, "route", "add", "default", "via", here),
        ("ip", "route", "add", node.pods, "via", there),
        (*node.prefix, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
    ):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise ClusterFailure(f"`{' '.join(command)}` failed: {result.stderr}")
