"""etcd, the API server (with an audit log), the controller manager and the scheduler, as processes of this machine."""

import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import yaml

from cluster.local import processes
from cluster.local.addresses import Addresses
from cluster.local.certificates import Authority, write_token_key
from cluster.places import AUDIT_LOG, BINARIES, KUBECONFIG, RUN
from cluster.programs.debian import ETCD

NODE: Final = "fleetprof-e2e"
SECOND_NODE: Final = "fleetprof-e2e-2"
# Started in this order, stopped in the other.
PARTS: Final = ("etcd", "apiserver", "controller-manager", "scheduler")


def start(addresses: Addresses) -> None:
    """Returns when the API server is ready; KUBECONFIG is then its administrator's."""
    _write_certificates(addresses)
    _start_etcd(addresses)
    _start_api_server(addresses)
    processes.wait_for(lambda: _is_ready(addresses), "readiness", RUN, "apiserver")
    _start_controllers(addresses)


def stop() -> None:
    """Stops all of it, the store last."""
    for name in reversed(PARTS):
        processes.stop(RUN, name)


def _write_certificates(addresses: Addresses) -> None:
    authority = Authority(RUN)
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    api_hosts = ["127.0.0.1", addresses.first_service, addresses.node_ip, *names]
    authority.issue("apiserver", "kube-apiserver", hosts=api_hosts)
    authority.issue("admin", "admin", "system:masters")
    authority.issue("front-proxy", "front-proxy")
    _, second_ip = addresses.link
    for name, ip in ((NODE, addresses.node_ip), (SECOND_NODE, second_ip)):
        authority.issue(name, f"system:node:{name}", "system:nodes", [name, ip])
    write_token_key(RUN)
    authority.write_kubeconfig(KUBECONFIG, "admin", addresses.server)
    for name in (NODE, SECOND_NODE):
        authority.write_kubeconfig(RUN / f"{name}.kubeconfig", name, addresses.server_for_nodes)
    authority.write_kubeconfig(RUN / "proxy.kubeconfig", "admin", addresses.server_for_nodes)


def _start_etcd(addresses: Addresses) -> None:
    client = f"http://127.0.0.1:{addresses.ports['etcd']}"
    peer = f"http://127.0.0.1:{addresses.ports['etcd_peer']}"
    command: list[str | Path] = [
        ETCD,
        f"--data-dir={RUN / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        "--unsafe-no-fsync",
    ]
    processes.start(RUN, "etcd", command)


def _start_api_server(addresses: Addresses) -> None:
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }
    (RUN / "audit-policy.yaml").write_text(yaml.safe_dump(policy))
    command: list[str | Path] = [
        BINARIES / "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{addresses.ports['etcd']}",
        f"--advertise-address={addresses.node_ip}",
        f"--secure-port={addresses.ports['api']}",
        f"--service-cluster-ip-range={addresses.services}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--enable-aggregator-routing=true",
        f"--audit-policy-file={RUN / 'audit-policy.yaml'}",
        f"--audit-log-path={AUDIT_LOG}",
        "--tls-cert-file=apiserver.crt",
        "--tls-private-key-file=apiserver.key",
        "--client-ca-file=ca.crt",
        "--requestheader-client-ca-file=ca.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--proxy-client-cert-file=front-proxy.crt",
        "--proxy-client-key-file=front-proxy.key",
        "--kubelet-client-certificate=admin.crt",
        "--kubelet-client-key=admin.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=sa.pub",
        "--service-account-signing-key-file=sa.key",
    ]
    processes.start(RUN, "apiserver", command)


def _start_controllers(addresses: Addresses) -> None:
    common = [
        f"--kubeconfig={KUBECONFIG}",
        f"--authentication-kubeconfig={KUBECONFIG}",
        f"--authorization-kubeconfig={KUBECONFIG}",
        f"--cert-dir={RUN / 'certs'}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]
    controller_manager: list[str | Path] = [
        BINARIES / "kube-controller-manager",
        *common,
        f"--secure-port={addresses.ports['controller_manager']}",
        "--service-account-private-key-file=sa.key",
        "--root-ca-file=ca.crt",
        "--use-service-account-credentials",
        "--allocate-node-cidrs",
        f"--cluster-cidr={addresses.pods}",
        "--node-cidr-mask-size=24",
        # A busy machine is not a lost node.
        "--node-monitor-grace-period=120s",
    ]
    processes.start(RUN, "controller-manager", controller_manager)
    secure_port = f"--secure-port={addresses.ports['scheduler']}"
    processes.start(RUN, "scheduler", [BINARIES / "kube-scheduler", *common, secure_port])


def _is_ready(addresses: Addresses) -> bool:
    return fetch(addresses.server + "/readyz", RUN) == b"ok"


def fetch(url: str, folder: Path) -> bytes | None:
    """The server's answer to the administrator; None when it does not."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError):
        return None
