"""A real S3 server in the cluster, with one bucket, reachable for pods and for the tests.

Guarantees: nothing is kept when it goes; while it is down, its Service refuses connections, as a broken store does.
"""

import contextlib
import re
import secrets
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import botocore.exceptions
from cluster.images.building import STORE
from fleetprof_api.keys import ledger_key, report_key, report_page_key
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import Report
from msgspec import json as msgspec_json

from scene.api import Api, wait_until

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NAMESPACE = "e2e-store"
_PORT = 9000


class Bucket:
    """A bucket of an S3 server in the cluster, as the tests read it: past the Service, through a port of their own."""

    def __init__(
        self, api: Api, name: str, keys: tuple[str, str], server: tuple[str, str, int], authority: Path | None = None
    ) -> None:
        """`server`: namespace, workload, port. `authority`: of its certificate, for `localhost` too; None: HTTP."""
        self._api = api
        self.bucket = name
        self.access_key, self.secret_key = keys
        self._server = server
        self._authority = authority
        self._scheme = "https" if authority else "http"
        self._forward: subprocess.Popen[str] | None = None
        self._client: S3Client | None = None

    def close(self) -> None:
        """Ends the way to it."""
        if self._forward is not None:
            self._forward.terminate()
            self._forward.wait(10)
            if self._forward.stdout is not None:
                self._forward.stdout.close()
            self._forward = None
        self._client = None

    def client(self) -> "S3Client":
        """S3 for the tests themselves, past the Service."""
        if self._client is None or self._forward is None or self._forward.poll() is not None:
            self.close()
            self._forward = self._api.forward(*self._server)
            assert self._forward.stdout is not None
            line = self._forward.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            assert found, line
            address = f"{self._scheme}://localhost:{found[1]}"
            verify = str(self._authority) if self._authority else None
            self._client = self._session().client("s3", endpoint_url=address, verify=verify)
        return self._client

    def keys(self, namespace: str, uid: str) -> list[str]:
        """The keys of one request's objects, less what all of them have in common."""
        prefix = ledger_key(namespace, uid).removesuffix("ledger.json")
        listed = self.client().list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return sorted(each["Key"].removeprefix(prefix) for each in listed.get("Contents", []))

    def ledger(self, namespace: str, uid: str) -> Ledger:
        """The end of every rank."""
        return msgspec_json.decode(self._read(ledger_key(namespace, uid)), type=Ledger)

    def report(self, namespace: str, uid: str) -> Report:
        """The findings of the analyzer."""
        return msgspec_json.decode(self._read(report_key(namespace, uid)), type=Report)

    def page(self, namespace: str, uid: str) -> str:
        """The report as a page."""
        return self._read(report_page_key(namespace, uid)).decode()

    def _read(self, key: str) -> bytes:
        return self.client().get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def _session(self) -> boto3.Session:
        return boto3.Session(self.access_key, self.secret_key, region_name="us-east-1")


class StoreInCluster(Bucket):
    """versitygw over an emptyDir, with one bucket; its namespace is the caller's to remove.

    It speaks TLS where a folder has `ca.crt`, and `tls.crt` and `tls.key` for `store.NAMESPACE.svc` and `localhost`.
    """

    def __init__(self, api: Api, namespace: str = NAMESPACE, certificates: Path | None = None) -> None:
        keys = ("fleetprof-e2e", secrets.token_hex(16))
        authority = certificates / "ca.crt" if certificates else None
        super().__init__(api, "captures", keys, (namespace, "deployment/store", _PORT), authority)
        self._namespace = namespace
        self._certificates = certificates
        self.endpoint = f"{self._scheme}://store.{namespace}.svc:{_PORT}"

    def start(self) -> None:
        """Returns when the bucket is there; the namespace must be."""
        self._api.create(*self._objects())
        wait_until(self._make_bucket, lambda: f"the S3 server\n{self._api.explain(self._namespace)}")

    def go_down(self) -> None:
        """From now on nobody answers; the data stays on the volume."""
        self._api.patch("Service", "store", {"spec": {"selector": {"app": "nobody"}}}, self._namespace)
        slices = "kubernetes.io/service-name=store"
        wait_until(
            lambda: (
                not any(
                    each.get("endpoints")
                    for each in self._api.list("EndpointSlice", self._namespace, "discovery.k8s.io/v1", slices)
                )
            ),
            "the store's end",
        )

    def come_back(self) -> None:
        """It answers again."""
        self._api.patch("Service", "store", {"spec": {"selector": {"app": "store"}}}, self._namespace)

    def _make_bucket(self) -> bool:
        with contextlib.suppress(AssertionError, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            self.client().create_bucket(Bucket=self.bucket)
            return True
        self.close()
        return False

    def secret(self, namespace: str, name: str) -> dict[str, Any]:
        """The credentials as an installation wants them."""
        values = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}

    def _objects(self) -> list[dict[str, Any]]:
        metadata = {"name": "store", "namespace": self._namespace}
        labels = {"app": "store"}
        tls = ["--cert", "/tls/tls.crt", "--key", "/tls/tls.key"] if self._certificates else []
        volumes: list[dict[str, Any]] = [{"name": "data", "emptyDir": {}}]
        mounts = [{"name": "data", "mountPath": "/data"}]
        besides: list[dict[str, Any]] = []
        if self._certificates:
            data = {name: (self._certificates / name).read_text() for name in ("tls.crt", "tls.key")}
            kept = {"name": "store-tls", "namespace": self._namespace}
            besides.append({"apiVersion": "v1", "kind": "Secret", "metadata": kept, "stringData": data})
            volumes.append({"name": "tls", "secret": {"secretName": "store-tls"}})
            mounts.append({"name": "tls", "mountPath": "/tls"})
        server = {
            "name": "store",
            "image": STORE,
            "args": ["--port", f":{_PORT}", "--region", "us-east-1", *tls, "posix", "/data"],
            "env": [
                {"name": "ROOT_ACCESS_KEY", "value": self.access_key},
                {"name": "ROOT_SECRET_KEY", "value": self.secret_key},
            ],
            "ports": [{"containerPort": _PORT}],
            "volumeMounts": mounts,
            "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        pod = {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 1,
            "containers": [server],
            "volumes": volumes,
        }
        template = {"metadata": {"labels": labels}, "spec": pod}
        deployment = {"selector": {"matchLabels": labels}, "strategy": {"type": "Recreate"}, "template": template}
        service = {"selector": labels, "ports": [{"port": _PORT}]}
        return [
            *besides,
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment},
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        ]
