"""The web UI's process with an account of its own at an API server, as in a pod of a cluster."""

import os
import shutil
import sys
from pathlib import Path

from harness.kubernetes.api_server import ApiServer

_WITH_ACCOUNT = """
from pathlib import Path
from fleetprof_webui.cluster import main
main.ACCOUNT = Path({account!r})
main.main()
"""


def in_cluster(server: ApiServer, account: Path, token: str) -> tuple[list[str], dict[str, str]]:
    """The words that start it, before its flags, and its environment. Its token and authority go into `account`."""
    (account / "token").write_text(token)
    shutil.copy(server.authority, account / "ca.crt")
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    return [sys.executable, "-c", _WITH_ACCOUNT.format(account=str(account))], {**os.environ, **address}
