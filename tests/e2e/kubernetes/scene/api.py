"""The cluster's API, as the tests see it: objects as plain dictionaries, and the two programs that users have."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import kubernetes
import yaml
from cluster.places import BINARIES
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

Object = dict[str, Any]
Answer = TypeVar("Answer")
PATIENCE_S = 120.0


def wait_until(
    happened: Callable[[], Answer],
    what: Callable[[], str] | str,
    patience_s: float = PATIENCE_S,
    pause_s: float = 0.2,
) -> Answer:
    """The first true answer; fails the test with `what` when none comes."""
    end = time.monotonic() + patience_s
    while True:
        if answer := happened():
            return answer
        if time.monotonic() > end:
            words = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {patience_s:.0f} s in vain for {words}")
        time.sleep(pause_s)


class Api:
    """One cluster, with its administrator's rights or those of another user (`as_user`)."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(str(kubeconfig)))
        self._environment = os.environ | {
            "KUBECONFIG": str(kubeconfig),
            "PATH": f"{BINARIES}:{os.environ['PATH']}",
        }

    def _resource(self, api_version: str, kind: str) -> Any:
        return self._client.resources.get(api_version=api_version, kind=kind)

    def get(self, kind: str, name: str, namespace: str | None = None, api: str = "v1") -> Object | None:
        """The object; None when there is none."""
        try:
            found: Object = self._resource(api, kind).get(name=name, namespace=namespace).to_dict()
        except NotFoundError:
            return None
        return found

    def list(self, kind: str, namespace: str | None = None, api: str = "v1", labels: str = "") -> list[Object]:
        """All objects of a kind that carry the labels."""
        listed = self._resource(api, kind).get(namespace=namespace, label_selector=labels)
        return [item.to_dict() for item in listed.items]

    def create(self, *objects: Object) -> None:
        """Creates them; a conflict is an error of the test."""
        for each in objects:
            resource = self._resource(each["apiVersion"], each["kind"])
            resource.create(body=each, namespace=each["metadata"].get("namespace"))

    def ensure(self, *objects: Object) -> None:
        """Creates those that are not there."""
        for each in objects:
            try:
                self.create(each)
            except ConflictError:
                continue

    def patch(self, kind: str, name: str, change: Object, namespace: str | None = None, api: str = "v1") -> None:
        """Merges a change."""
        self._resource(api, kind).patch(
            body=change, name=name, namespace=namespace, content_type="application/merge-patch+json"
        )

    def delete(self, kind: str, name: str, namespace: str | None = None, api: str = "v1", **options: Any) -> None:
        """Deletes it; it may be gone already."""
        try:
            body = {"propagationPolicy": "Background", **options}
            self._resource(api, kind).delete(name=name, namespace=namespace, body=body)
        except NotFoundError:
            return

    def await_gone(self, kind: str, name: str, namespace: str | None = None, api: str = "v1") -> None:
        """Returns when there is no such object."""
        wait_until(lambda: self.get(kind, name, namespace, api) is None, f"the end of {kind} {namespace}/{name}")

    def kubectl(self, *words: str, document: str = "", fails: bool = False, timeout_s: float = PATIENCE_S) -> str:
        """The output of `kubectl`; with `fails`, that of its refusal."""
        return self._run("kubectl", *words, document=document, fails=fails, timeout_s=timeout_s)

    def helm(self, *words: str, fails: bool = False) -> str:
        """The output of `helm`."""
        return self._run("helm", *words, document="", fails=fails, timeout_s=300)

    def apply(self, *objects: Object) -> None:
        """`kubectl apply`, as a user does."""
        self.kubectl("apply", "-f", "-", document=yaml.safe_dump_all(objects))

    def logs(self, pod: str, namespace: str, container: str) -> str:
        """The output of a container."""
        return self.kubectl("logs", pod, "-n", namespace, "-c", container)

    def forward(self, namespace: str, target: str, port: int, here: int | None = None) -> subprocess.Popen[str]:
        """A running `kubectl port-forward`; its first line names the port on this machine: `here`, or any."""
        return subprocess.Popen(
            ["kubectl", "port-forward", "-n", namespace, target, f"{here or ''}:{port}", "--address", "127.0.0.1"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def explain(self, namespace: str) -> str:
        """The state of a namespace, for a test that fails."""
        return self.kubectl("get", "pods,jobs,events", "-n", namespace, "-o", "wide")

    def _run(self, *command: str, document: str, fails: bool, timeout_s: float) -> str:
        result = subprocess.run(
            command,
            env=self._environment,
            input=document,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        report = f"`{' '.join(command)}` ended with {result.returncode}:\n{result.stdout}{result.stderr}"
        assert (result.returncode != 0) == fails, report
        return result.stdout + result.stderr if fails else result.stdout


def parse(text: str) -> Object:
    """One JSON object of a program's output."""
    parsed: Object = json.loads(text)
    return parsed
