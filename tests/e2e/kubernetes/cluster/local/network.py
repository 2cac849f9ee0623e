"""Services and names for the local cluster: kube-proxy, CoreDNS on the machine itself, and three rules of our own.

Guarantees: `stop` takes back every rule and link, and forwarding is left as it was found.
"""

import subprocess
from pathlib import Path
from typing import Final

import yaml

from cluster.local import processes
from cluster.local.addresses import Addresses
from cluster.local.node import BRIDGE, ClusterNode
from cluster.places import BINARIES, KUBECONFIG, RUN

_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")
_FOUND: Final = RUN / "forwarding-before"
_PROXY_CONFIG: Final = "kube-proxy.yaml"
# kube-proxy's own --cleanup forgets this chain.
_LEFT_BY_PROXY: Final = (
    ("-D", "INPUT", "-j", "KUBE-FIREWALL"),
    ("-D", "OUTPUT", "-j", "KUBE-FIREWALL"),
    ("-F", "KUBE-FIREWALL"),
    ("-X", "KUBE-FIREWALL"),
)


def start(addresses: Addresses, node: ClusterNode) -> None:
    """Starts kube-proxy and the DNS server; their Service is an object for `kubectl apply` (dns_objects)."""
    _FOUND.write_text(_FORWARDING.read_text())
    _FORWARDING.write_text("1\n")
    for rule in _rules(addresses):
        _change_rule("-A", rule)
    start_proxy(addresses, node)
    subprocess.run(["ip", "address", "add", f"{addresses.dns_ip}/32", "dev", "lo"], capture_output=True, check=True)
    _start_dns(addresses)


def stop(addresses: Addresses | None) -> None:
    """Stops both, and removes rules and bridge; `addresses` is None when the last run did not come to choose them."""
    processes.stop(RUN, "coredns")
    processes.stop(RUN, "kube-proxy")
    config = RUN / _PROXY_CONFIG
    if config.is_file():
        command: list[str | Path] = [BINARIES / "kube-proxy", "--cleanup", "--config", config]
        subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        for left in _LEFT_BY_PROXY:
            for program in ("iptables", "ip6tables"):
                subprocess.run([program, "-w", "-t", "filter", *left], capture_output=True, check=False)
    for rule in _rules(addresses) if addresses else ():
        while _change_rule("-D", rule):
            continue  # a killed run and the next may both have added it
    subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True, check=False)
    if addresses:
        subprocess.run(
            ["ip", "address", "delete", f"{addresses.dns_ip}/32", "dev", "lo"], capture_output=True, check=False
        )
    if _FOUND.is_file():
        _FORWARDING.write_text(_FOUND.read_text())


def dns_objects(addresses: Addresses) -> list[dict[str, object]]:
    """The Service that pods ask for names, and its one endpoint on this machine."""
    ports = [("dns", "UDP"), ("dns-tcp", "TCP")]
    metadata = {"name": "kube-dns", "namespace": "kube-system"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {
                "clusterIP": addresses.dns_service,
                "ports": [{"name": n, "port": 53, "protocol": p} for n, p in ports],
            },
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [addresses.dns_ip], "conditions": {"ready": True}}],
            "ports": [{"name": n, "port": 53, "protocol": p} for n, p in ports],
        },
    ]


def start_proxy(addresses: Addresses, node: ClusterNode) -> None:
    """kube-proxy of one node."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": addresses.pods,
        "hostnameOverride": node.name,
        "clientConnection": {"kubeconfig": str(RUN / "proxy.kubeconfig")},
        # The machine's own limits stay as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": f"127.0.0.1:{node.ports['proxy_health']}",
        "metricsBindAddress": f"127.0.0.1:{node.ports['proxy_metrics']}",
    }
    file = node.folder / _PROXY_CONFIG
    file.write_text(yaml.safe_dump(config))
    processes.start(node.folder, "kube-proxy", [*node.prefix, BINARIES / "kube-proxy", "--config", file])


def _start_dns(addresses: Addresses) -> None:
    config = RUN / "Corefile"
    config.write_text(f""".:53 {{
  bind {addresses.dns_ip}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {KUBECONFIG}
  }}
  cache 1
}}
""")
    processes.start(RUN, "coredns", [BINARIES / "coredns", "-conf", config])


def _rules(addresses: Addresses) -> list[list[str]]:
    """(table and chain, then the rule) of what pods need to reach this machine and each other."""
    comment = ["-m", "comment", "--comment", "fleetprof-e2e"]
    outside = ["-s", addresses.pods, "!", "-d", addresses.pods]
    return [
        ["nat", "POSTROUTING", *outside, *comment, "-j", "MASQUERADE"],
        ["filter", "FORWARD", "-s", addresses.pods, *comment, "-j", "ACCEPT"],
        ["filter", "FORWARD", "-d", addresses.pods, *comment, "-j", "ACCEPT"],
    ]


def _change_rule(change: str, rule: list[str]) -> bool:
    table, chain, *rest = rule
    result = subprocess.run(["iptables", "-w", "-t", table, change, chain, *rest], capture_output=True, check=False)
    return result.returncode == 0
