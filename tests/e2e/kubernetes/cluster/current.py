"""The cluster that KUBECONFIG names: used as it is, never made or removed by us.

The images must be there or pullable under their names, and PyTorch at the folder below on every node.
"""

import os
from pathlib import Path

from cluster.programs import binaries
from cluster.refusal import NoCluster


class CurrentCluster:
    """Somebody's own cluster."""

    audit_log: Path | None = None
    tool = None
    torch_folder = Path("/var/lib/fleetprof-e2e/torch-2.15")

    def __init__(self) -> None:
        named = os.environ.get("KUBECONFIG")
        if not named or not Path(named).is_file():
            raise NoCluster("E2E_CLUSTER=current needs KUBECONFIG to name a file that exists")
        self.kubeconfig = Path(named)

    def is_up(self) -> bool:
        """It is not ours to start."""
        return True

    def build(self) -> None:
        """Builds the clients that are missing."""
        binaries.build(binaries.CLIENTS)

    def up(self) -> None:
        """Only the clients are built."""
        self.build()

    def down(self) -> None:
        """It is not ours to stop."""

    def load(self, archive: Path) -> None:
        """Never called: there is no tool that builds archives."""
        raise NoCluster(f"{archive} cannot be loaded into a cluster that is not ours")
