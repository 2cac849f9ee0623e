"""kubectl itself, where a port of the cluster must be reached from here.

Guarantees: a forwarded port listens on 127.0.0.1 and ends with the block.
"""

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace
from fleetprof_cli.messages import Failure

_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")
_CALL_S: Final = 30


class Kubectl:
    """kubectl itself, with the user's kubeconfig and context, in one namespace."""

    def __init__(self, place: ClusterPlace, namespace: str) -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise Failure("there is no kubectl on PATH", next_step="install it: it forwards the port")
        self._command = [program, f"--namespace={namespace}"]
        if place.kubeconfig:
            self._command.append(f"--kubeconfig={place.kubeconfig}")
        if place.context:
            self._command.append(f"--context={place.context}")

    def get(self, kind: str, name: str) -> Mapping[str, Any]:
        """An object. Raises Failure."""
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
                f"kubectl get {kind} {name}: {' '.join(result.stderr.split())[:500]}",
                next_step=f"an administrator can let you get this {kind} and create pods/portforward (docs/install.md)",
                code=ExitCode.REFUSED,
            )
        answer: Mapping[str, Any] = json.loads(result.stdout)
        return answer

    @contextmanager
    def forward(self, target: str, port: int) -> Iterator[int]:
        """A free port of 127.0.0.1 that leads to the target's, while the block runs. Raises Failure."""
        process = subprocess.Popen(
            [*self._command, "port-forward", "--address=127.0.0.1", target, f":{port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is ours: what is at the other end may have to be told before the way there ends.
            start_new_session=True,
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
