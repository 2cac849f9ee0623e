"""The webhook's process, for tests that let a real API server ask it."""

import base64
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleetprof_operator.identity.certificates import Certificates, renew_certificates

from harness.ports import find_ports
from harness.waiting import wait_until


@dataclass(frozen=True)
class RunningWebhook:
    """`folder` holds its log; `bundle` is what an API server is told to trust, in base64."""

    folder: Path
    port: int
    health: int
    bundle: str

    def address(self, path: str) -> dict[str, str]:
        """A `clientConfig` for that path."""
        return {"url": f"https://localhost:{self.port}{path}", "caBundle": self.bundle}

    def is_ready(self) -> bool:
        """Tells whether it answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def scrape(self) -> str:
        """Its metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/metrics", timeout=5) as answer:
            return str(answer.read().decode())


@contextmanager
def run_webhook(folder: Path, kubeconfig: Path, hub: str) -> Iterator[RunningWebhook]:
    """A webhook that answers, and gives pods this hub; it must end in order."""
    port, health = find_ports(2)
    made = renew_certificates(Certificates(), ["localhost"], datetime.now(UTC))
    webhook = RunningWebhook(folder, port, health, base64.b64encode(made.ca_crt).decode())
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "FLEETPROF_LISTEN": f"https=127.0.0.1:{port},http=127.0.0.1:{health}",
        "FLEETPROF_TLS_DIRECTORY": str(folder),
        "FLEETPROF_HUB_CA_FILE": str(folder / "ca.crt"),
        "FLEETPROF_HUB": hub,
        "FLEETPROF_SIDECAR_IMAGE": "ghcr.io/fleetprof/sidecar:0.1.0",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleetprof_operator.injection.main"], env=environment, stdout=log, stderr=log
        )
    try:
        # The certificate comes after the process: an operator makes it.
        wait_until(lambda: _listens(webhook), "the webhook's health", 60)
        assert not webhook.is_ready()
        (folder / "tls.key").write_bytes(made.tls_key)
        (folder / "tls.crt").write_bytes(made.tls_crt)
        (folder / "ca.crt").write_bytes(made.ca_crt)
        wait_until(webhook.is_ready, "the webhook", 60)
        yield webhook
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, (folder / "log").read_text()
        print((folder / "log").read_text())


def _listens(webhook: RunningWebhook) -> bool:
    try:
        socket.create_connection(("127.0.0.1", webhook.health), timeout=1).close()
    except OSError:
        return False
    return True
