"""The places where the cluster keeps what it builds (for good) and what it runs on (until `down`)."""

import os
from pathlib import Path
from typing import Final

KUBERNETES: Final = "1.36.3"
# Their API servers are built for the nightly tests: the oldest that has all policies of the chart, and one between.
OLDER: Final = ("1.30.14", "1.33.13")

ROOT: Final = Path(__file__).parents[4]
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"


def built(release: str) -> Path:
    """The place where the programs of one release of Kubernetes are, built once."""
    return CACHE / f"cluster-{release}"


# With the others that a cluster needs: containerd, CoreDNS, helm.
BUILT: Final = built(KUBERNETES)
BINARIES: Final = BUILT / "bin"
# Everything that a running cluster writes. `down` removes it.
RUN: Final = CACHE / "cluster-run"
KUBECONFIG: Final = RUN / "kubeconfig"
AUDIT_LOG: Final = RUN / "audit.log"
# Pods reach it through a PersistentVolume, so its folders must be readable by every user.
TORCH: Final = CACHE / "cluster-torch-2.15"
