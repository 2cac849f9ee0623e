"""A real Kubernetes API server with nothing behind it: etcd and kube-apiserver on loopback, stopped by pid.

Enough for what the API server itself does: schemas, CEL, defaults, RBAC, tables, field selectors. Nothing runs in it.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from ssl import create_default_context
from typing import Any, ClassVar

import pytest
import urllib3
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness.ports import find_ports
from harness.waiting import wait_until

KUBERNETES = "1.36.3"
# Another release's API server, for `make nightly`; etcd and kubectl stay.
SERVED = os.environ.get("FLEETPROF_KUBERNETES") or KUBERNETES
MINOR = int(SERVED.split(".")[1])
# They end with the tests, also if these are killed: an API server whose etcd is gone does not end by SIGTERM.
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
CRD_FILE = Path(__file__).parents[3] / "crds/fleetprof.io_profilerequests.yaml"
POLICY_CRD_FILE = CRD_FILE.with_name("fleetprof.io_profilepolicies.yaml")


def since(minor: int) -> pytest.MarkDecorator:
    """For a test of what API servers can do since Kubernetes 1.`minor`; on an older one it is skipped."""
    return pytest.mark.skipif(minor > MINOR, reason=f"Kubernetes 1.{minor} is needed, and this is {SERVED}")


def find_programs() -> dict[str, Path] | str:
    """etcd, kube-apiserver and kubectl, of the test cluster's cache, else of PATH; or what is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"
    found: dict[str, Path] = {}
    for name, release in (("etcd", KUBERNETES), ("kube-apiserver", SERVED), ("kubectl", KUBERNETES)):
        place = cache / f"cluster-{release}/bin" / name
        # What is on PATH is of no known release.
        on_path = shutil.which(name) if release == KUBERNETES else None
        if place.is_file():
            found[name] = place
        elif on_path:
            found[name] = Path(on_path)
        elif release == KUBERNETES:
            return f"no {name}, neither in {place.parent} nor on PATH: `make cluster` builds it"
        else:
            return f"no {name} of Kubernetes {release} in {place.parent}: `make nightly` builds it"
    return found


@contextmanager
def run_api_server(folder: Path, *flags: str) -> Iterator["ApiServer"]:
    """A running API server with these flags too. Skips without its programs, or fails where they are required."""
    programs = find_programs()
    if isinstance(programs, str):
        if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(programs)
        pytest.skip(programs)
    server = ApiServer(programs, folder, *flags)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def serve_requests(folder: Path, *flags: str) -> Iterator["ApiServer"]:
    """A running API server that knows our kinds; skips and fails as `run_api_server` does."""
    with run_api_server(folder, *flags) as server:
        applied = server.kubectl("apply", "-f", str(CRD_FILE), "-f", str(POLICY_CRD_FILE))
        assert applied.returncode == 0, applied.stderr
        for plural, short in (("profilerequests", "profreq"), ("profilepolicies", "profpol")):
            path = f"/apis/fleetprof.io/v1alpha1/{plural}"
            wait_until(lambda path=path: server.call("GET", path)[0] == 200, "the kind to be served")  # type: ignore[misc]
            # What describes a kind is published after the kind itself.
            explained = partial(server.kubectl, "explain", short)
            wait_until(lambda explained=explained: explained().returncode == 0, "the kind to be described")  # type: ignore[misc]
        yield server


class ApiServer:
    """etcd and kube-apiserver over a folder. Users: `admin` may do everything, `guest` nothing that no role grants."""

    running: ClassVar[set["ApiServer"]] = set()

    def __init__(self, programs: dict[str, Path], folder: Path, *flags: str) -> None:
        self.programs = programs
        self._flags = flags
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._tokens = {user: secrets.token_hex(16) for user in ("admin", "guest")}
        self._words: Sequence[str] = ()
        self.port = 0

    def start(self) -> None:
        """Starts both and waits until the API server is ready."""
        self.running.add(self)
        self.port, etcd, peers = find_ports(3)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self._folder / "sa.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        (self._folder / "tokens.csv").write_text(
            f'{self._tokens["admin"]},admin,1,"system:masters"\n{self._tokens["guest"]},guest,2\n'
        )
        clients, peer = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peers}"
        self._run(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )
        self._run(
            "kube-apiserver",
            f"--etcd-servers={clients}",
            f"--cert-dir={self._folder}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._folder / 'sa.key'}",
            f"--service-account-signing-key-file={self._folder / 'sa.key'}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            *self._flags,
        )
        wait_until(self._is_ready, "the API server", 240)

    @property
    def authority(self) -> Path:
        """The certificate that clients check it with."""
        return self._folder / "apiserver.crt"

    def kill_api(self) -> None:
        """SIGKILL for kube-apiserver; etcd keeps what it has."""
        process = self._processes.pop()
        process.kill()
        process.wait()
        self._words = process.args[len(_WITH_US) + 1 :]  # type: ignore[index, assignment]

    def restart_api(self) -> None:
        """Starts it again, at the same port; returns when it is ready."""
        self._run("kube-apiserver", *self._words)
        wait_until(self._is_ready, "the API server", 240)

    def stop(self) -> None:
        """Ends both at once: what they hold is thrown away, and an orderly end takes seconds."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()
        self._connections.clear()
        self.running.discard(self)

    @classmethod
    def pause_all(cls) -> None:
        """Until `resume_all` none of this process runs: one that nobody asks takes 2 % of a core."""
        cls._signal_all(signal.SIGSTOP)

    @classmethod
    def resume_all(cls) -> None:
        """They go on where they were."""
        cls._signal_all(signal.SIGCONT)

    @classmethod
    def _signal_all(cls, number: signal.Signals) -> None:
        for process in (process for server in cls.running for process in server._processes):
            process.send_signal(number)

    def kubeconfig(self, user: str = "admin", namespace: str = "default") -> Path:
        """A kubeconfig file of this user."""
        path = self._folder / f"{user}-{namespace}.kubeconfig"
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority": str(self._folder / "apiserver.crt"),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user, "namespace": namespace}}],
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self._tokens[user]}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def kubectl(self, *words: str, user: str = "admin", text: str = "") -> subprocess.CompletedProcess[str]:
        """Runs kubectl to its end, `text` on its stdin."""
        return subprocess.run(
            [self.programs["kubectl"], "--kubeconfig", self.kubeconfig(user), *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"HOME": str(self._folder)},
        )

    def call(
        self,
        method: str,
        path: str,
        document: object = None,
        user: str = "admin",
        *,
        account: str = "",
        kind: str = "",
        token: str = "",
    ) -> tuple[int, dict[str, Any]]:
        """One request to the API: the HTTP status and the answer. A PATCH is a merge patch unless `kind` says another.

        `account` is a service account, NAMESPACE:NAME, in whose name the call is made: with its rights and no other.
        """
        kind = kind or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        headers = {"Authorization": f"Bearer {token or self._tokens[user]}", "Content-Type": kind}
        if account:
            headers["Impersonate-User"] = f"system:serviceaccount:{account}"
        answer = self.send(method, path, json.dumps(document).encode() if document is not None else None, headers)
        text = answer.data.decode()
        # An address that is not served (yet) is answered in plain text.
        return answer.status, json.loads(text) if text.startswith("{") else {"message": text}

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """One request as it is, by the administrator unless a header says who. Raises OSError."""
        headers = {"Authorization": f"Bearer {self._tokens['admin']}"} | headers
        try:
            return self._connections.request(method, f"https://127.0.0.1:{self.port}{path}", body=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionError(f"{method} {path}: {error}") from error

    @cached_property
    def _connections(self) -> urllib3.PoolManager:
        """Kept for the next request: a new one takes both sides five times the processor time of the request."""
        return urllib3.PoolManager(ca_certs=str(self.authority), retries=False, timeout=60, maxsize=8)

    def _run(self, name: str, *words: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [*_WITH_US, self.programs[name], *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                )
            )

    def _is_ready(self) -> bool:
        for process in self._processes:
            assert process.poll() is None, f"{process.args!r} ended; see the logs in {self._folder}"
        if not (self._folder / "apiserver.crt").exists():
            return False
        try:
            # The file is there before its content is.
            context = create_default_context(cafile=str(self._folder / "apiserver.crt"))
            with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/readyz", context=context, timeout=5):
                return True
        except OSError:
            time.sleep(0.1)
            return False
