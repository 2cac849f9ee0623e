"""The chart's bundled store, reached from outside the cluster: `kubectl port-forward`, and the keys of its reader.

The store's Service says which Secret holds the keys of a server that only reads. So nobody handles the keys that write,
and who may read that Secret and forward a port may see reports: Kubernetes' own rights decide.

Guarantees: the forwarding ends with the command; keys stay in this process, and out of what it starts; what is
missing is said with the next step.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec
from fleetprof_store.location import StoreLocation

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace
from fleetprof_cli.messages import Failure
from fleetprof_cli.store_location import open_store

if TYPE_CHECKING:
    from fleetprof_store.base import Store

READER_ANNOTATION: Final = "fleetprof.io/reader-secret"
READER_PORT: Final = 7071
_IN_CLUSTER: Final = re.compile(r"http://(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc:\d+")
_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_CALL_S: Final = 30


@contextmanager
def reach_bundled_store(location: StoreLocation, place: ClusterPlace) -> "Iterator[Store]":
    """The store as it is reached from here, while the block runs. Raises Failure."""
    found = _IN_CLUSTER.fullmatch(location.endpoint or "")
    if found is None:
        raise Failure(
            f"--port-forward: {location.endpoint or 'the store'} is not a Service of the cluster",
            next_step="leave it out; your own S3 credentials are used then",
            code=ExitCode.INVALID,
        )
    kubectl = _Kubectl(place, found["namespace"])
    service = kubectl.get("service", found["service"])
    secret = (service["metadata"].get("annotations") or {}).get(READER_ANNOTATION)
    if not secret:
        raise Failure(
            f"--port-forward: the store {found['service']} has no server that only reads",
            next_step="store.bundled.readerSecret of the chart names its keys (docs/gitops.md)",
            code=ExitCode.REFUSED,
        )
    data = kubectl.get("secret", secret).get("data") or {}
    if not set(_KEYS) <= data.keys():
        raise Failure(f"the Secret {secret} does not hold {' and '.join(_KEYS)}", code=ExitCode.REFUSED)
    with kubectl.forward(f"service/{found['service']}", READER_PORT) as port:
        with _with_keys({key: base64.b64decode(data[key]).decode() for key in _KEYS}):
            # boto3 takes the keys as it makes its client; a browser that is started later must not have them.
            store = open_store(msgspec.structs.replace(location, endpoint=f"http://127.0.0.1:{port}"))
        yield store


class _Kubectl:
    """kubectl itself, with the user's kubeconfig and context, in one namespace."""

    def __init__(self, place: ClusterPlace, namespace: str) -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise Failure("--port-forward: there is no kubectl on PATH", next_step="install it, or forward the port")
        self._command = [program, f"--namespace={namespace}"]
        if place.kubeconfig:
            self._command.append(f"--kubeconfig={place.kubeconfig}")
        if place.context:
            self._command.append(f"--context={place.context}")

    def get(self, kind: str, name: str) -> Mapping[str, Any]:
        try:
            result = subprocess.run(
                [*self._command, "get", kind, name, "-o", "json"],
                capture_output=True,
                text=True,
                timeout=_CALL_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(f"kubectl get {kind} {name}: {error}") from None
        if result.returncode != 0:
            raise Failure(
                f"--port-forward: {' '.join(result.stderr.split())[:500]}",
                next_step=f"an administrator can let you get this {kind} and create pods/portforward (docs/install.md)",
                code=ExitCode.REFUSED,
            )
        answer: Mapping[str, Any] = json.loads(result.stdout)
        return answer

    @contextmanager
    def forward(self, target: str, port: int) -> Iterator[int]:
        """A free port of this machine that leads to the target's."""
        process = subprocess.Popen(
            [*self._command, "port-forward", target, f":{port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        too_late = threading.Timer(_CALL_S, process.kill)
        too_late.start()
        assert process.stdout is not None
        assert process.stderr is not None
        drains: list[threading.Thread] = []
        try:
            found = _FORWARDING.match(process.stdout.readline())
            too_late.cancel()
            if found is None:
                process.kill()
                complaint = " ".join(process.stderr.read(2000).split()) or "it said nothing in time"
                raise Failure(f"kubectl port-forward {target}: {complaint}", code=ExitCode.REFUSED)
            for pipe in (process.stdout, process.stderr):  # a line for each connection: a full pipe would stop it
                drain = threading.Thread(target=_drain, args=(pipe,), daemon=True)
                drain.start()
                drains.append(drain)
            yield int(found[1])
        finally:
            too_late.cancel()
            process.kill()
            process.wait()
            for drain in drains:
                drain.join()
            process.stdout.close()
            process.stderr.close()


def _drain(pipe: IO[str]) -> None:
    while pipe.read(4096):
        pass


@contextmanager
def _with_keys(keys: Mapping[str, str]) -> Iterator[None]:
    """As the environment of this process alone has them; a profile or a session of the user does not come between."""
    names = (*keys, "AWS_SESSION_TOKEN", "AWS_PROFILE")
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ.update(keys)
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)
