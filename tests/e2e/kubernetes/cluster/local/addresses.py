"""Ports and networks that nobody on this machine uses yet."""

import ipaddress
import itertools
import json
import socket
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster.refusal import NoCluster

_PARTS = (
    "api",
    "etcd",
    "etcd_peer",
    "controller_manager",
    "scheduler",
    "kubelet",
    "kubelet_health",
    "proxy_health",
    "proxy_metrics",
)


@dataclass(frozen=True, slots=True)
class Addresses:
    """All addresses of one cluster; written beside its other state, so that a later command finds them."""

    node_ip: str
    ports: dict[str, int]
    # A /16, of which each node has a part, and the link between the nodes another.
    pods: str
    services: str

    @property
    def server(self) -> str:
        """The API server's URL, as this machine sees it."""
        return f"https://127.0.0.1:{self.ports['api']}"

    @property
    def server_for_nodes(self) -> str:
        """The same, as every node sees it."""
        return f"https://{self.node_ip}:{self.ports['api']}"

    @property
    def first_service(self) -> str:
        """The address of the Service `kubernetes`."""
        return str(ipaddress.ip_network(self.services)[1])

    @property
    def dns_service(self) -> str:
        """The address of the Service `kube-dns`."""
        return str(ipaddress.ip_network(self.services)[10])

    def pods_of(self, node: int) -> str:
        """The addresses of the pods on one node, counted from 0."""
        return str(self._part(node))

    @property
    def dns_ip(self) -> str:
        """The name server's own address on this machine, with the port that network policies name."""
        return str(self._part(254)[53])

    @property
    def link(self) -> tuple[str, str]:
        """The two ends of the cable to the second node: this machine's, and the node's."""
        part = self._part(255)
        return str(part[1]), str(part[2])

    def _part(self, number: int) -> ipaddress.IPv4Network:
        network = ipaddress.IPv4Network(self.pods)
        return next(itertools.islice(network.subnets(new_prefix=24), number, None))

    def save(self, file: Path) -> None:
        """Writes them as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1))


def load_addresses(file: Path) -> Addresses:
    """Reads what `save` wrote."""
    return Addresses(**json.loads(file.read_text()))


def choose_addresses() -> Addresses:
    """Free ports, and two networks that overlap with no route of this machine."""
    taken = _routes()
    candidates = (ipaddress.ip_network(f"10.{second}.0.0/16") for second in (244, *range(100, 244)))
    free = [network for network in candidates if not any(network.overlaps(route) for route in taken)]
    if len(free) < 2:
        raise NoCluster("every network 10.100.0.0/16 … 10.244.0.0/16 is routed here already; use E2E_CLUSTER=current")
    sockets = [socket.socket() for _ in _PARTS]
    for each in sockets:
        each.bind(("0.0.0.0", 0))
    ports = {part: each.getsockname()[1] for part, each in zip(_PARTS, sockets, strict=True)}
    for each in sockets:
        each.close()
    pods, services = free[0], next(free[1].subnets(new_prefix=24))
    return Addresses(_node_ip(), ports, str(pods), str(services))


def _routes() -> list[ipaddress.IPv4Network]:
    listed = subprocess.run(["ip", "-json", "-4", "route"], capture_output=True, text=True, check=True).stdout
    found = [entry["dst"] for entry in json.loads(listed or "[]")]
    return [ipaddress.IPv4Network(destination, strict=False) for destination in found if destination != "default"]


def _node_ip() -> str:
    """The address with which this machine would leave; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            raise NoCluster("this machine has no IPv4 route, and a node needs an address; use E2E_CLUSTER") from None
        return str(probe.getsockname()[0])
