"""fleetprof as an administrator installs it: the chart with the web UI, a bucket, an identity provider, Secrets."""

from pathlib import Path

from cluster.images.building import version
from cluster.places import ROOT

from scene.alerting import TOKEN, WEBHOOK
from scene.api import Api, Object, wait_until
from scene.containers import kill
from scene.namespaces import make_namespace, remove_namespace
from scene.people import People
from scene.store import StoreInCluster

NAMESPACE = "fleetprof-system"
_RELEASE = "fleetprof"
# By kubectl port-forward; the browser of the tests goes to the port that it chose.
ADDRESS = "http://localhost:8770"
_SECRET = "s3"
_LEASE = "fleetprof"


class Installation:
    """The release `fleetprof` in `fleetprof-system`, itself under `restricted`."""

    namespace = NAMESPACE

    def __init__(self, api: Api, store: StoreInCluster, people: People, audit_log: Path | None) -> None:
        self._api = api
        self._store = store
        self._people = people
        # Where this installation's part of the log begins, in bytes.
        self.audit_begin = audit_log.stat().st_size if audit_log is not None else 0

    def install(self) -> None:
        """`helm install`, from nothing; returns when everything is ready."""
        self.clean()
        make_namespace(self._api, NAMESPACE)
        self._api.create(self._store.secret(NAMESPACE, _SECRET), *self._people.for_the_web_ui(NAMESPACE))
        for name, key, value in (("alerts", "token", TOKEN), ("notifications", "url", WEBHOOK)):
            metadata = {"name": name, "namespace": NAMESPACE}
            self._api.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: value}})
        values = {
            "store.s3.bucket": self._store.bucket,
            "store.s3.endpoint": self._store.endpoint,
            "store.credentials.operatorSecret": _SECRET,
            "store.credentials.webuiSecret": _SECRET,
            "webui.url": ADDRESS,
            "operator.alerts.tokenSecret": "alerts",
            "operator.notifications.secret": "notifications",
            **self._people.values(),
            "image.tag": version(),
            # Two cores carry trainers, analyzer and everything else.
            "analyzer.resources.requests.cpu": "100m",
        }
        settings = [word for name, value in values.items() for word in ("--set-string", f"{name}={value}")]
        settings += ["--set", "webui.enabled=true"]
        chart = str(ROOT / "charts/fleetprof")
        self._api.helm("install", _RELEASE, chart, "-n", NAMESPACE, "--wait", "--timeout", "4m", *settings)

    def uninstall(self) -> None:
        """`helm uninstall`."""
        self._api.helm("uninstall", _RELEASE, "-n", NAMESPACE, "--wait", "--timeout", "4m")

    def clean(self) -> None:
        """Removes what an earlier run left, requests and their kind included."""
        if self._api.get("Namespace", NAMESPACE) is not None:
            self._api.helm("uninstall", _RELEASE, "-n", NAMESPACE, "--wait", "--ignore-not-found")
        remove_namespace(self._api, NAMESPACE)
        self._api.delete("CustomResourceDefinition", "profilerequests.fleetprof.io", api="apiextensions.k8s.io/v1")

    def upgrade(self, *settings: str) -> None:
        """`helm upgrade` with one setting more, as `--set` takes it; the others stay."""
        chart = str(ROOT / "charts/fleetprof")
        words = [word for setting in settings for word in ("--set", setting)]
        self._api.helm(
            "upgrade", _RELEASE, chart, "-n", NAMESPACE, "--reuse-values", "--wait", "--timeout", "4m", *words
        )

    def kill_operator(self) -> None:
        """SIGKILL; Kubernetes starts it again."""
        (pod,) = self.pods("operator")
        kill(pod, "operator")

    def leader(self) -> str:
        """The pod that serves, by the Lease; "" while none does."""
        lease = self._api.get("Lease", _LEASE, "kube-system", "coordination.k8s.io/v1")
        assert lease is not None
        return str(lease["spec"].get("holderIdentity") or "")

    def await_leader_after(self, pod: str) -> str:
        """The pod that serves in another's place."""
        wait_until(lambda: self.leader() not in ("", pod), lambda: f"a leader after {pod}\n{self.logs()}", pause_s=0.05)
        return self.leader()

    def stop_webhook(self) -> None:
        """No replica answers any more."""
        self._scale_webhook(0)
        wait_until(lambda: not self.pods("webhook"), "the webhook's end")

    def start_webhook(self) -> None:
        """Both replicas are ready again."""
        self._scale_webhook(2)
        self._api.kubectl("rollout", "status", "deployment/fleetprof-webhook", "-n", NAMESPACE, "--timeout=120s")

    def pods(self, component: str) -> list[Object]:
        """The pods of one component."""
        return self._api.list("Pod", NAMESPACE, labels=f"app.kubernetes.io/component={component}")

    def logs(self) -> str:
        """The operator's last words, for a test that fails."""
        return self._api.kubectl("logs", "deployment/fleetprof-operator", "-n", NAMESPACE, "--tail=100")

    def _scale_webhook(self, replicas: int) -> None:
        change = {"spec": {"replicas": replicas}}
        self._api.patch("Deployment", "fleetprof-webhook", change, NAMESPACE, "apps/v1")
