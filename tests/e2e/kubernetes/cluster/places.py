"""Where the cluster keeps what it builds (for good) and what it runs on (until `down`)."""

import os
from pathlib import Path
from typing import Final

KUBERNETES: Final = "1.36.3"

ROOT: Final = Path(__file__).parents[4]
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"
# Programs that are built once: Kubernetes, containerd, CoreDNS, helm.
BUILT: Final = CACHE / f"cluster-{KUBERNETES}"
BINARIES: Final = BUILT / "bin"
# Everything that a running cluster writes. `down` removes it.
RUN: Final = CACHE / "cluster-run"
KUBECONFIG: Final = RUN / "kubeconfig"
AUDIT_LOG: Final = RUN / "audit.log"
# Pods reach it through a PersistentVolume, so its folders must be readable by every user.
TORCH: Final = CACHE / "cluster-torch-2.15"
