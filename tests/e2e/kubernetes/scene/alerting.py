"""A cluster's parts besides fleetprof to watch jobs: Prometheus with the chart's rules, Alertmanager, a webhook.

Both programs are Debian's, run on this machine and reach the operator by kubectl port-forward, which is started anew
when the operator's container was. The webhook is a pod, because the operator calls it. Guarantees: all of it ends with
the block, Prometheus' data stays while it is killed and started again.
"""

import json
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from cluster.images.building import TRAINER
from harness.kubernetes.chart import S3, render
from harness.prometheus import run_alertmanager, run_prometheus

from scene.api import Api, Object
from scene.namespaces import make_namespace, remove_namespace

NAMESPACE: Final = "e2e-webhook"
WEBHOOK: Final = f"http://webhook.{NAMESPACE}.svc:8080/told"
TOKEN: Final = "0123456789abcdef-closed-loop"
# Short times for a test; which alert it is about is the test's business.
_VALUES: Final = (
    "job=fleetprof",
    "thresholds.graceSeconds=0",
    "disabled={FleetprofIterationTimeDrift}",
)
_LISTENS: Final = """
import http.server
class Webhook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("", 8080), Webhook).serve_forever()
"""


class NotifiedPod:
    """The pod that is told of captures."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def start(self) -> None:
        """Returns when it answers."""
        remove_namespace(self._api, NAMESPACE)
        make_namespace(self._api, NAMESPACE)
        self._api.create(*self._objects())
        self._api.kubectl("wait", "--for=condition=Ready", "pod/webhook", "-n", NAMESPACE, "--timeout=120s")

    def remove(self) -> None:
        """Deletes the pod and its Service."""
        self._api.delete("Namespace", NAMESPACE)

    def texts(self) -> list[str]:
        """The texts that it was told."""
        return [json.loads(line)["text"] for line in self._api.logs("webhook", NAMESPACE, "webhook").splitlines()]

    @staticmethod
    def _objects() -> list[Object]:
        metadata = {"name": "webhook", "namespace": NAMESPACE, "labels": {"app": "webhook"}}
        container = {
            "name": "webhook",
            "image": TRAINER,
            "command": ["python3", "-c", _LISTENS],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        spec = {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        service = {"selector": {"app": "webhook"}, "ports": [{"port": 8080}]}
        return [
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        ]


class PrometheusServer:
    """One that scrapes the operator, and can be killed and started again."""

    def __init__(self, folder: Path, scraped: int, alertmanager: int) -> None:
        self._folder = folder
        rule = render((*S3, "rules.enabled=true", *(f"rules.{value}" for value in _VALUES)))
        self._groups: list[dict[str, Any]] = rule.one("PrometheusRule", "fleetprof")["spec"]["groups"]
        for each in (each for group in self._groups for each in group["rules"]):
            if each.get("alert") == "FleetprofLowIterationRate":
                each["for"] = "4s"
            if each.get("alert") == "FleetprofJobStalled":
                each["for"], each["expr"] = "1s", each["expr"].replace("> 300", "> 60")
            if each.get("record") == "fleetprof:workload_iterations_per_second:avg":
                each["expr"] = each["expr"].replace("[5m]", "[10s]")
        self._configuration = {
            "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]},
            "scrape_configs": [
                {
                    "job_name": "fleetprof",
                    "honor_labels": True,
                    "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}],
                }
            ],
        }
        self._running = ExitStack()
        self._port = 0

    def start(self) -> None:
        """Over the data that there is."""
        self._port = self._running.enter_context(run_prometheus(self._folder, self._configuration, self._groups))

    def stop(self) -> None:
        """Ends it; the data stays."""
        self._running.close()

    def read_rate(self, job: str) -> float:
        """Iterations per second of a job as they are recorded; 0 while they are not."""
        found = self._ask(f'/api/v1/query?query=fleetprof:workload_iterations_per_second:avg{{workload="{job}"}}')
        return sum(float(each["value"][1]) for each in found["result"])

    def firing(self) -> list[dict[str, Any]]:
        """Labels of the alerts about jobs."""
        found = self._ask("/api/v1/alerts")["alerts"]
        return [each["labels"] for each in found if "workload" in each["labels"] and each["state"] == "firing"]

    def explain(self) -> str:
        """The facts that it knows, for a test that fails."""
        return json.dumps([self._ask("/api/v1/alerts"), self._ask("/api/v1/targets?state=active")], indent=1)[:6000]

    def _ask(self, path: str) -> dict[str, Any]:
        path = quote(path, safe="/?=&")
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data


@contextmanager
def run_alerting(api: Api, operator_namespace: str, folder: Path) -> Iterator[PrometheusServer]:
    """Prometheus, which runs, and Alertmanager, which calls the operator."""
    with ExitStack() as opened:
        metrics = opened.enter_context(_keep_forward(api, operator_namespace, "service/fleetprof-metrics", 8080))
        calls = opened.enter_context(_keep_forward(api, operator_namespace, "service/fleetprof-hub", 8444))
        alertmanager = {
            "route": {
                "receiver": "fleetprof",
                "group_by": ["alertname"],
                "group_wait": "1s",
                "group_interval": "2s",
                "repeat_interval": "10s",
            },
            "receivers": [
                {
                    "name": "fleetprof",
                    "webhook_configs": [
                        {
                            "url": f"https://127.0.0.1:{calls}/alerts",
                            "send_resolved": False,
                            "http_config": {
                                "authorization": {"credentials": TOKEN},
                                "tls_config": {
                                    "ca_file": _write_authority(api, operator_namespace, folder),
                                    "server_name": f"fleetprof-hub.{operator_namespace}.svc",
                                },
                            },
                        }
                    ],
                }
            ],
        }
        port = opened.enter_context(run_alertmanager(folder, alertmanager))
        prometheus = PrometheusServer(folder, metrics, port)
        opened.callback(prometheus.stop)
        prometheus.start()
        yield prometheus


def _write_authority(api: Api, namespace: str, folder: Path) -> str:
    path = folder / "ca.crt"
    words = (
        "get",
        "secret",
        "fleetprof-tls",
        "-n",
        namespace,
        "-o",
        r"go-template={{index .data `ca.crt` | base64decode}}",
    )
    path.write_text(api.kubectl(*words))
    return str(path)


@contextmanager
def _keep_forward(api: Api, namespace: str, target: str, port: int) -> Iterator[int]:
    """A port of this machine that leads there, also after whatever was there has been started anew."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        here: int = probe.getsockname()[1]
    running: list[subprocess.Popen[str]] = []
    ends = threading.Event()

    def keep() -> None:
        while not ends.is_set():
            forward = api.forward(namespace, target, port, here)
            running.append(forward)
            forward.communicate()
            ends.wait(0.5)

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield here
    finally:
        ends.set()
        running[-1].terminate()
        thread.join(30)
