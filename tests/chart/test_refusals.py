"""Settings that cannot work are refused before anything is installed, in a sentence that says what to set."""

import re

import pytest
from harness.kubernetes.chart import (
    CHART,
    NAMESPACED,
    OIDC,
    PROXY,
    S3,
    SHARD,
    VALUE_SETS,
    WEBUI,
    ValuesRefused,
    render,
    run_helm,
)

pytestmark = pytest.mark.helm

BUNDLED = ("store.bundled.enabled=true",)

# What is set, and words of the refusal: the value, and what to set instead.
IMPOSSIBLE = {
    "no store": ((), ["store.s3.bucket", "--set store.bundled.enabled=true"]),
    "two stores": ((*S3, *BUNDLED), ["store.bundled.enabled", "excludes"]),
    "credentials for the bundled store": ((*BUNDLED, "store.credentials.operatorSecret=a"), ["excludes"]),
    "keys of a store that is not there": (
        (*S3, "store.bundled.existingSecret=a"),
        ["store.bundled.existingSecret", "store.credentials.operatorSecret"],
    ),
    "namespaces and cluster": ((*S3, "scope.namespaces={a}"), ["scope.namespaces", "scope.cluster=false"]),
    "CRD without cluster rights": (
        (*NAMESPACED, "crds.enabled=true"),
        ["kubectl apply -f crds/", "crds.enabled=false"],
    ),
    "webhook without cluster rights": (
        (*NAMESPACED, "webhook.enabled=true"),
        ["fleetprof inject", "webhook.enabled=false"],
    ),
    "aggregation without cluster rights": (
        (*NAMESPACED, "rbac.aggregateToViewAndEdit=true"),
        ["rbac.aggregateToViewAndEdit", "scope.cluster"],
    ),
    "annotations of somebody else's account": (
        (
            *S3,
            "operator.serviceAccount.name=a",
            "operator.serviceAccount.annotations.a=b",
        ),
        ["operator.serviceAccount.annotations", "operator.serviceAccount.name empty"],
    ),
    "a web UI without an address": (
        (*OIDC, "webui.url="),
        ["webui.url", "http://localhost:8770"],
    ),
    "a web UI that is open to everybody": (
        WEBUI,
        ["webui.enabled", "webui.kubectl=true", "webui.oidc.issuerUrl", "webui.proxy"],
    ),
    "a provider without a client": ((*OIDC, "webui.oidc.clientId="), ["webui.oidc.clientId"]),
    "a proxy without proof": ((*PROXY, "webui.proxy.audience="), ["without proof", "webui.proxy.audience"]),
    "provider and proxy": ((*OIDC, "webui.proxy.jwtHeader=X-Identity"), ["webui.oidc.issuerUrl", "excludes"]),
    "sessions in several processes": ((*OIDC, "webui.replicas=2"), ["webui.replicas=1", "webui.proxy"]),
    "a web UI that cannot read the store": (
        (*OIDC, "store.credentials.operatorSecret=writer"),
        ["store.credentials.webuiSecret", "docs/rbac-and-s3.md"],
    ),
    "a web UI without cluster rights": (
        (*NAMESPACED, *OIDC[len(S3) :]),
        ["webui.enabled=false", "fleetprof ui --store"],
    ),
    "an Ingress to loopback": (
        (*OIDC, "webui.url=http://localhost:8770", "webui.ingress.enabled=true"),
        ["webui.ingress.enabled", "https://"],
    ),
    "an image that is pulled anyhow": (
        (*S3, "sidecar.requireImage=true", "image.pullPolicy=Always"),
        ["sidecar.requireImage", "image.pullPolicy=IfNotPresent"],
    ),
    "an image that nobody looks for": (
        (*S3, "webhook.enabled=false", "sidecar.requireImage=true"),
        ["sidecar.requireImage", "webhook.enabled"],
    ),
    "an image on nodes that it may not see": (
        (*SHARD, "sidecar.requireImage=true"),
        ["sidecar.requireImage", "scope.cluster"],
    ),
    "an issuer without cert-manager": (
        (*S3, "tls.certManager.issuerRef.name=a"),
        ["tls.certManager.issuerRef.name", "tls.certManager.enabled"],
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_sets_of_values_are_refused_with_the_next_step(name: str) -> None:
    values, words = IMPOSSIBLE[name]
    with pytest.raises(ValuesRefused) as refusal:
        render(values)
    for word in words:
        assert word in str(refusal.value)


# One wrong value, and where the schema finds it.
WRONG = {
    "store.s3.buket=a": "/store/s3",
    "store.s3.bucket=Not_A_Bucket": "/store/s3/bucket",
    "store.s3.prefix=/a": "/store/s3/prefix",
    "store.s3.endpoint=minio:9000": "/store/s3/endpoint",
    "store.s3.endpoint=https://key:secret@minio": "/store/s3/endpoint",
    "store.s3.addressing=dns": "/store/s3/addressing",
    "store.credentials.operatorSecret=Not_A_Secret": "/store/credentials/operatorSecret",
    "store.s3.authority=a..b": "/store/s3/authority",
    "store.bundled.existingSecret=-a": "/store/bundled/existingSecret",
    "image.pullSecrets={Mirror}": "/image/pullSecrets/0",
    "sidecar.requireImage=maybe": "/sidecar/requireImage",
    "analyzer.maxPerNamespace=0": "/analyzer/maxPerNamespace",
    "store.bundled.size=big": "/store/bundled/size",
    "image.pullPolicy=Sometimes": "/image/pullPolicy",
    "image.digests.operator=latest": "/image/digests/operator",
    "scope.cluster=yes": "/scope/cluster",
    "operator.replicas=0": "/operator/replicas",
    "operator.resources.limits.memory=lots": "/operator/resources/limits/memory",
    "operator.resources.claims=1": "/operator/resources",
    "pods.tolerations[0].operator=Maybe": "/pods/tolerations/0/operator",
    "pods.logLevel=loud": "/pods/logLevel",
    "webhook.replicas=0": "/webhook/replicas",
    "tls.certManager.issuerRef.kind=Secret": "/tls/certManager/issuerRef/kind",
    "webui.url=http://ui.example": "/webui/url",
    "webui.url=https://ui.example/path": "/webui/url",
    "webui.oidc.issuerUrl=http://idp.example": "/webui/oidc/issuerUrl",
    "webui.oidc.password=a": "/webui/oidc",
    "webui.writes=service": "/webui/writes",
    "webui.impersonation.groups={system:masters}": "/webui/impersonation/groups/0",
    "networkPolicy.apiServerPorts={0}": "/networkPolicy/apiServerPorts/0",
    "networkPolicy.storeCidrs={anywhere}": "/networkPolicy/storeCidrs/0",
    "networkPolicy.extraEgress[0].from=a": "/networkPolicy/extraEgress/0",
    "fullnameOverride=Not-A-Name": "/fullnameOverride",
}


@pytest.mark.parametrize("value", WRONG)
def test_a_wrong_value_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(ValuesRefused) as refusal:
        render((*S3, value))
    assert re.search(rf"at '{re.escape(WRONG[value])}(/|'|:)", str(refusal.value)), refusal.value


def test_values_of_a_parent_chart_are_none_of_ours() -> None:
    assert render((*S3, "global.imageRegistry=elsewhere")) == render(S3)


def test_a_cluster_that_is_too_old_is_refused() -> None:
    with pytest.raises(ValuesRefused, match=r"requires kubeVersion: >=1\.28"):
        render(S3, "--kube-version=1.27.9")


@pytest.mark.parametrize("name", ["S3", "bundled store", "namespaced"])
def test_a_set_of_values_passes_helms_own_lint(name: str) -> None:
    run_helm("lint", "--strict", str(CHART), *(word for value in VALUE_SETS[name] for word in ("--set", value)))
