"""The chart, rendered by the real helm: values in, objects out."""

import os
import pickle
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts/fleetprof"
NAMESPACE = "fleetprof-system"

# Every switch of the chart, alone and in the sets that people use.
S3 = ("store.s3.bucket=traces", "store.s3.region=eu-central-1")
NAMESPACED = (*S3, "scope.cluster=false", "crds.enabled=false", "webhook.enabled=false")
SHARD = (*S3, "scope.cluster=false", "crds.enabled=false", "scope.namespaces={team-a,team-b}")
WEBUI = (*S3, "webui.enabled=true", "webui.url=https://ui.example")
OIDC = (*WEBUI, "webui.oidc.issuerUrl=https://idp.example:8443/realm", "webui.oidc.clientId=fleetprof")
PROXY = (
    *WEBUI,
    "webui.proxy.jwtHeader=X-Identity",
    "webui.proxy.jwksUrl=https://proxy.example/keys",
    "webui.proxy.issuer=https://proxy.example",
    "webui.proxy.audience=fleetprof",
)
# What each component's pod may be given.
PLACES = (
    "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1",
    "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key=metadata.name",
    "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator=In",
    "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].values={node-1}",
    "topologySpreadConstraints[0].maxSkew=2",
    "topologySpreadConstraints[0].topologyKey=topology.kubernetes.io/zone",
    "topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
)
PROXIED = ("extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy.example:3128")
MOUNTS = (
    *PROXIED,
    "extraVolumes[0].name=corporate",
    "extraVolumes[0].configMap.name=corporate-ca",
    "extraVolumeMounts[0].name=corporate",
    "extraVolumeMounts[0].mountPath=/etc/corporate",
)
VALUE_SETS: dict[str, tuple[str, ...]] = {
    "S3": S3,
    "S3 with Secrets": (*S3, "store.credentials.operatorSecret=writer"),
    "S3 with roles": (
        *S3,
        r"operator.serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/writer",
    ),
    "MinIO": ("store.s3.bucket=traces", "store.s3.prefix=a/b", "store.s3.endpoint=https://minio.example:9000"),
    "a private store": (
        "store.s3.bucket=traces",
        "store.s3.endpoint=https://s3.corp",
        "store.s3.authority=corporate-ca",
    ),
    "bundled store": ("store.bundled.enabled=true",),
    "bundled store without a volume": ("store.bundled.enabled=true", "store.bundled.size="),
    "bundled store with Secrets": (
        "store.bundled.enabled=true",
        "store.bundled.existingSecret=writer",
        "store.bundled.readerSecret=reader",
    ),
    "bundled store with one Secret": ("store.bundled.enabled=true", "store.bundled.existingSecret=writer"),
    "cert-manager": (*S3, "tls.certManager.enabled=true"),
    "cert-manager with an issuer": (
        *S3,
        "tls.certManager.enabled=true",
        "tls.certManager.issuerRef.name=ours",
        "tls.certManager.issuerRef.kind=ClusterIssuer",
    ),
    "namespaced": NAMESPACED,
    "two namespaces": (*NAMESPACED, "scope.namespaces={team-a,team-b}"),
    "a shard": SHARD,
    "no webhook": (*S3, "webhook.enabled=false"),
    "no rights": (*S3, "rbac.create=false"),
    "owners": (*S3, "rbac.owners[0].apiGroup=example.com", "rbac.owners[0].resources={pipelines}"),
    "aggregated roles": (*S3, "rbac.aggregateToViewAndEdit=true"),
    "no CRD": (*S3, "crds.enabled=false"),
    "no policies": (*S3, "networkPolicy.enabled=false"),
    "monitored": (*S3, "serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus"),
    "DCGM": (*S3, "sidecar.dcgmExporterUrl=http://$(FLEETPROF_NODE_IP):9400/metrics"),
    "accounts of others": (
        *OIDC,
        "operator.serviceAccount.name=a",
        "webui.serviceAccount.name=e",
    ),
    "placed": (
        *OIDC,
        "image.pullSecrets={mirror}",
        *(f"{part}.priorityClassName=low" for part in ("pods", "analyzer")),
        *(f"{part}.nodeSelector.pool=cpu" for part in ("pods", "analyzer")),
        *(f"{part}.tolerations[0].operator=Exists" for part in ("pods", "analyzer")),
        "pods.annotations.team=ml",
    ),
    "pinned": (
        *OIDC,
        *(f"image.digests.{name}=sha256:{'0' * 64}" for name in ("operator", "sidecar", "analyzer", "webui")),
    ),
    "narrow network": (
        *S3,
        "networkPolicy.storeCidrs={10.0.0.0/8}",
        r"networkPolicy.scrapers[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=monitoring",
        "networkPolicy.extraEgress[0].ports[0].port=80",
        "networkPolicy.extraEgress[0].to[0].ipBlock.cidr=169.254.170.23/32",
    ),
    "narrow network and a role": (
        *S3,
        "networkPolicy.storeCidrs={10.0.0.0/8}",
        "networkPolicy.apiServerPorts={6443}",
        r"operator.serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/writer",
    ),
    "bounds": (
        *S3,
        "bounds.contact=the platform team",
        "bounds.default.maxIterations=10",
        "bounds.default.collect={Shapes,ModuleTree}",
        "bounds.namespaces.team-a.maxRanks=8",
        "bounds.namespaces.team-a.maxIterations=50",
        "bounds.namespaces.team-a.maxTraceBytes=2147483648",
        "bounds.namespaces.team-c.collect={Stacks}",
    ),
    "standing by": (*S3, "operator.replicas=3", "scope.leaseNamespace=team-b"),
    "rules": (
        *S3,
        "rules.enabled=true",
        "serviceMonitor.labels.release=prometheus",
        "rules.disabled={FleetprofHubRefuses}",
    ),
    "dashboards": (*S3, "dashboards.enabled=true"),
    "alerts": (*S3, "operator.alerts.tokenSecret=told", "operator.notifications.secret=slack"),
    "no bounds at admission": (*S3, "bounds.admission=false"),
    "web UI": OIDC,
    "web UI and its Secrets": (
        *OIDC,
        "store.credentials.operatorSecret=writer",
        "store.credentials.webuiSecret=reader",
        "webui.oidc.clientSecret=client",
        "webui.identityAuthority=corporate-ca",
        "webui.names.groupsClaim=groups",
        "webui.names.groupsPrefix=oidc:",
        "webui.writes=token",
    ),
    "web UI by port-forward": (
        "store.bundled.enabled=true",
        *OIDC[len(S3) :],
        "webui.url=http://localhost:8770",
    ),
    "one of several clusters": (*OIDC, "store.cluster=east"),
    "web UI by kubectl": (*S3, "webui.enabled=true", "webui.kubectl=true", "webui.writes=token"),
    "web UI behind a proxy": (
        *PROXY,
        "webui.replicas=3",
        "webui.catalog.postgresSecret=catalog",
        "webui.extraEgress[0].ports[0].port=6432",
        "webui.writes=impersonate",
    ),
    "web UI that impersonates some": (
        *OIDC,
        "webui.writes=impersonate",
        "webui.impersonation.users={ann}",
        "webui.impersonation.groups={oidc:team-a}",
    ),
    "web UI with an Ingress": (
        *OIDC,
        "webui.ingress.enabled=true",
        "webui.ingress.className=nginx",
        r"webui.ingress.annotations.cert-manager\.io/cluster-issuer=ours",
        "webui.ingress.tlsSecret=ui-tls",
        r"webui.serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/reader",
    ),
    "pods that wait for good": (*S3, "sidecar.patienceSeconds=0"),
    "an image that is there first": (*S3, "sidecar.requireImage=true", "sidecar.prepull.enabled=true"),
    "another name": (*S3, "fullnameOverride=profiler"),
    "a site's own": (
        *OIDC,
        "commonLabels.cost-centre=ml",
        *(f"pods.{value}" for value in PLACES),
        *(f"operator.{value}" for value in MOUNTS),
        "webhook.pods.failurePolicy=Fail",
        "webhook.excludedNamespaces={team-x,kube-system}",
    ),
}


class ValuesRefused(Exception):
    """Helm's words for values that the chart does not take."""


@dataclass(frozen=True)
class Objects:
    """The objects of a release."""

    items: tuple[dict[str, Any], ...]

    def of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        """The objects of one kind, by name, with the namespace before it where that is not the release's."""
        return {
            "/".join(filter(None, (_elsewhere(item["metadata"].get("namespace", "")), item["metadata"]["name"]))): item
            for item in self.items
            if item["kind"] == kind
        }

    def one(self, kind: str, name: str) -> dict[str, Any]:
        """The object of that kind and name."""
        return self.of_kind(kind)[name]

    def pods(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every pod that this release makes, or has the operator make: its owner and its template."""
        for item in self.items:
            if item["kind"] in ("Deployment", "DaemonSet", "Job"):
                yield item["metadata"]["name"], item["spec"]["template"]
        yield "analyzer Jobs", self.analyzer_pod()

    def analyzer_pod(self) -> dict[str, Any]:
        """The template that the operator makes analyzer Jobs from."""
        (config,) = (item for name, item in self.of_kind("ConfigMap").items() if name.endswith("-analyzer"))
        template: dict[str, Any] = yaml.safe_load(config["data"]["pod.yaml"])
        return template


def _elsewhere(namespace: str) -> str:
    return "" if namespace == NAMESPACE else namespace


def find_helm() -> Path | None:
    """Helm of PATH, else the one that `make cluster` built."""
    if found := shutil.which("helm"):
        return Path(found)
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return next(iter(sorted((cache_home / "fleetprof").glob("cluster-*/bin/helm"), reverse=True)), None)


def run_helm(*arguments: str) -> str:
    """Its output. Raises ValuesRefused with what it says otherwise."""
    helm = find_helm()
    assert helm is not None
    result = subprocess.run([helm, *arguments], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise ValuesRefused(result.stderr)
    return result.stdout


@cache
def render(values: tuple[str, ...] = S3, *options: str, release: str = "fleetprof") -> Objects:
    """The objects of a release with these values, `a.b=c` each. Raises ValuesRefused."""
    settings = [word for value in values for word in ("--set", value)]
    text = run_helm("template", release, str(CHART), "--namespace", NAMESPACE, *settings, *options)
    return read_objects(text)


def read_objects(text: str) -> Objects:
    """The objects of YAML documents."""
    documents = (pickle.loads(_read_document(document)) for document in re.split(r"^---$", text, flags=re.MULTILINE))
    return Objects(tuple(item for item in documents if item))


@cache
def _read_document(text: str) -> bytes:
    """Pickled, since most are the same in many renderings; read by libyaml where PyYAML has it: a tenth of the time."""
    return pickle.dumps(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Kubernetes' own meaning of a selector's expressions."""
    assert selector.keys() == {"matchExpressions"}
    tests: dict[str, Callable[[str, list[str]], bool]] = {
        "DoesNotExist": lambda key, _: key not in labels,
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
    }
    return all(tests[rule["operator"]](rule["key"], rule.get("values", [])) for rule in selector["matchExpressions"])
