"""The enforcer of network policies on the first node while a test asks for it: kube-router's controller, as in k3s.

kube-proxy goes on serving Services, and the bridge carries the pods.

Guarantees: `stop` takes back its chains and sets, and nothing of anybody else's; its own `--cleanup-config` would flush
the machine's IPVS table too.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

from cluster.local import processes
from cluster.local.addresses import Addresses
from cluster.local.control_plane import NODE
from cluster.places import BINARIES, RUN
from cluster.programs import binaries, debian

_NAME: Final = "kube-router"
_OURS: Final = re.compile(r"KUBE-(ROUTER|POD-FW|NWPLCY)-")
_SETS: Final = re.compile(r"(inet6:)?(KUBE-(SRC|DST)-|kube-router-)")  # kube-proxy has sets that begin with KUBE- too
_HEALTH_PORT: Final = 20244


def start(addresses: Addresses) -> None:
    """Returns once policies are enforced for the pods that run."""
    binaries.build(("kube-router",))
    if not shutil.which("ipset"):
        debian.install_package("ipset")
    command: list[str | Path] = [
        BINARIES / "kube-router",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        f"--kubeconfig={RUN / 'proxy.kubeconfig'}",
        f"--hostname-override={NODE}",
        f"--service-cluster-ip-range={addresses.services}",
        f"--health-port={_HEALTH_PORT}",
        "--v=1",
    ]
    processes.start(RUN, _NAME, command, os.environ | {"NODE_NAME": NODE})
    synced = "sync iptables took"
    processes.wait_for(lambda: synced in (RUN / f"{_NAME}.log").read_text(), "a first sync", RUN, _NAME)


def stop() -> None:
    """Ends it, and takes its rules back; nothing happens where it did not run."""
    if not (RUN / f"{_NAME}.log").is_file():
        return
    processes.stop(RUN, _NAME)
    for program in ("iptables", "ip6tables"):
        _take_back(program, "-w", "-t", "filter")
    for name in _run("ipset", "list", "-name").split():
        if _SETS.match(name):
            _run("ipset", "destroy", name)


def _take_back(*table: str) -> None:
    rules = [line for line in _run(*table, "-S").splitlines() if _OURS.search(line)]
    for line in rules:
        if line.startswith("-A"):
            _run(*table, *shlex.split(line.replace("-A", "-D", 1)))
    for line in rules:
        if line.startswith("-N"):
            _run(*table, "-X", line.split()[1])


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
