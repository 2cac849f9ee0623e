"""`python -m cluster up|down|images|torch|api-server|older-api-servers|programs`: what the Makefile's targets call."""

import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from cluster.choice import Cluster, choose_cluster
from cluster.images import building
from cluster.images.tools import ImageTool
from cluster.places import BINARIES, OLDER
from cluster.programs import binaries, debian
from cluster.progress import say, step
from cluster.refusal import ClusterFailure, NoCluster
from cluster.torch_files import ensure_torch
from cluster.turns import alone


def build_images(cluster: Cluster) -> list[str]:
    """Builds all images; the names of those that a cluster of ours needs."""
    tool = cluster.tool
    if tool is None:
        say("the images of a cluster that is not ours must be there already")
        return []
    with alone("images"):
        return building.build(tool)


def load_images(cluster: Cluster, names: list[str]) -> None:
    """Loads those that changed into the cluster."""
    tool = cluster.tool
    if tool is None:
        return
    loaded = cluster.kubeconfig.with_name("images-loaded")
    known = loaded.read_text().splitlines() if loaded.is_file() else []
    current = [f"{name} {tool.identity(name)}" for name in names]
    changed = [line.split()[0] for line in current if line not in known]
    if changed:
        # One is written while another is read.
        with step(f"loading {len(changed)} images"), ThreadPoolExecutor(2) as pool:
            list(pool.map(partial(_load, cluster, tool), changed))
        loaded.write_text("\n".join(current) + "\n")


def _load(cluster: Cluster, tool: ImageTool, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "image.tar"
        tool.export(name, archive)
        cluster.load(archive)


def make(cluster: Cluster) -> None:
    """Returns when the cluster runs with all images loaded and PyTorch in its place."""
    ensure_torch()
    cluster.up()
    load_images(cluster, build_images(cluster))


def describe_use(cluster: Cluster) -> list[str]:
    """Commands for a shell to use the cluster: a PATH where kubectl and helm are not on it, and the kubeconfig."""
    missing = [name for name in ("kubectl", "helm") if shutil.which(name) is None and (BINARIES / name).is_file()]
    lines = [f"export PATH=$PATH:{BINARIES}  # has {' and '.join(missing)}"] if missing else []
    return [*lines, f"export KUBECONFIG={cluster.kubeconfig}"]


def _carry_out(command: str) -> None:
    cluster = choose_cluster()
    if command == "up":
        with alone():
            make(cluster)
        for line in describe_use(cluster):
            print(line)
    elif command == "down":
        with alone():
            cluster.down()
    elif command == "images":
        names = build_images(cluster)
        with alone():
            if cluster.is_up():
                load_images(cluster, names)
    elif command == "torch":
        ensure_torch()
    elif command == "api-server":
        debian.install()
        binaries.build(binaries.API_SERVER)
    elif command == "older-api-servers":
        for release in OLDER:
            binaries.build_api_server(release)
    elif command == "programs":
        cluster.build()
    else:
        known = "up, down, images, torch, api-server, older-api-servers or programs"
        raise NoCluster(f"{command!r} is no command: {known}")


def main(command: str) -> None:
    """Carries out one command; ends the process with 1 and the reason where it cannot."""
    try:
        _carry_out(command)
    except (NoCluster, ClusterFailure) as trouble:
        say(str(trouble))
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
