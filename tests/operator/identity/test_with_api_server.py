"""Tokens and certificates against a real API server: what it says of a pod's token, and whom it trusts."""

import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from cryptography import x509
from fleetprof_api.pods import ANALYSIS_AUDIENCE, AUDIENCE
from fleetprof_api.telemetry.figures import AUDIENCE as FIGURES
from fleetprof_operator.hub.access.authentication import Authenticator, Principal
from fleetprof_operator.identity.account_tokens import AccountTokens
from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.identity.issuer_keys import IssuerKeys
from fleetprof_operator.identity.token_review import TokenReviews
from fleetprof_operator.kubernetes.cluster import Cluster
from harness.kubernetes.api_server import ApiServer
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

pytestmark = pytest.mark.cluster
TEAM = "/api/v1/namespaces/identity-tests"


@pytest.fixture
async def cluster(api: ApiServer) -> AsyncIterator[Cluster]:
    configuration = Configuration()
    await config.load_kube_config(config_file=str(api.kubeconfig()), client_configuration=configuration)
    connected = Cluster(ApiClient(configuration))
    yield connected
    await connected.close()


@pytest.fixture(scope="module")
def pod(api: ApiServer) -> Iterator[dict[str, Any]]:
    """A pod that nobody runs, in a namespace with a service account."""
    call = api.call
    call("POST", "/api/v1/namespaces", {"metadata": {"name": "identity-tests"}})
    call("POST", f"{TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "x"}]}
    status, made = call("POST", f"{TEAM}/pods", {"metadata": {"name": "llama-0"}, "spec": spec})
    assert status == 201, made
    yield made
    call("DELETE", f"{TEAM}/pods/llama-0?gracePeriodSeconds=0")


def issue(api: ApiServer, pod: dict[str, Any] | None, audience: str = "fleetprof.io") -> str:
    """A token as the kubelet gets one for a projected volume."""
    spec: dict[str, Any] = {"audiences": [audience], "expirationSeconds": 600}
    if pod is not None:
        spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": "llama-0", "uid": pod["metadata"]["uid"]}
    status, made = api.call("POST", f"{TEAM}/serviceaccounts/default/token", {"spec": spec})
    assert status == 201, made
    token: str = made["status"]["token"]
    return token


@pytest.mark.parametrize("kind", [TokenReviews, IssuerKeys])
async def test_a_pods_token_and_no_other_is_good(
    api: ApiServer, cluster: Cluster, pod: dict[str, Any], kind: type
) -> None:
    authenticator: Authenticator = kind(cluster)
    good = issue(api, pod)
    expected = Principal("identity-tests", "llama-0", pod["metadata"]["uid"])
    assert await authenticator.authenticate(good) == expected
    header, claims, signature = good.split(".")
    for bad in (
        issue(api, None),
        issue(api, pod, "https://kubernetes.default.svc"),
        f"{header}.{claims}.{signature[:-8]}AAAAAAAA",
        f"{header}..{signature}",
        "nonsense",
    ):
        assert await authenticator.authenticate(bad) is None


@pytest.mark.attack
@pytest.mark.parametrize("kind", [TokenReviews, IssuerKeys])
async def test_a_token_of_an_analysis_is_no_sidecars_and_the_other_way_round(
    api: ApiServer, cluster: Cluster, pod: dict[str, Any], kind: type
) -> None:
    for audience, other in ((AUDIENCE, ANALYSIS_AUDIENCE), (ANALYSIS_AUDIENCE, AUDIENCE)):
        authenticator: Authenticator = kind(cluster, audience=audience)
        assert await authenticator.authenticate(issue(api, pod, audience)) is not None
        assert await authenticator.authenticate(issue(api, pod, other)) is None


@pytest.mark.attack
async def test_figures_are_for_tokens_of_their_account_alone(
    api: ApiServer, cluster: Cluster, pod: dict[str, Any]
) -> None:
    api.call("POST", f"{TEAM}/serviceaccounts", {"metadata": {"name": "fleetprof-top"}})
    readers = AccountTokens(IssuerKeys(cluster, audience=FIGURES), namespace="identity-tests", name="fleetprof-top")

    def ask(account: str, audience: str) -> str:
        spec = {"audiences": [audience], "expirationSeconds": 600}
        status, made = api.call("POST", f"{TEAM}/serviceaccounts/{account}/token", {"spec": spec})
        assert status == 201, made
        return str(made["status"]["token"])

    good = ask("fleetprof-top", FIGURES)
    assert await readers.admit(good) is True
    for bad in (
        ask("default", FIGURES),
        ask("fleetprof-top", AUDIENCE),
        issue(api, pod, FIGURES),
        f"{good[:-8]}AAAAAAAA",
        "",
    ):
        assert await readers.admit(bad) is False


async def test_a_pods_token_is_no_key_to_the_api(api: ApiServer, pod: dict[str, Any]) -> None:
    configuration = Configuration()
    await config.load_kube_config(config_file=str(api.kubeconfig()), client_configuration=configuration)
    configuration.api_key = {"BearerToken": f"Bearer {issue(api, pod)}"}
    connected = Cluster(ApiClient(configuration))
    try:
        with pytest.raises(Exception, match="Unauthorized"):
            await connected.get(f"{TEAM}/pods")
    finally:
        await connected.close()


async def test_the_secret_is_filled_and_the_api_server_told(api: ApiServer, cluster: Cluster) -> None:
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "identity-system"}})
    secrets = "/api/v1/namespaces/identity-system/secrets"
    assert api.call("POST", secrets, {"metadata": {"name": "tls"}, "type": "Opaque"})[0] == 201
    hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    webhook = {
        "name": "pods.identity.fleetprof.io",
        "clientConfig": {"service": {"name": "w", "namespace": "identity-system"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"never": "matches"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    assert api.call("POST", hooks, {"metadata": {"name": "identity"}, "webhooks": [webhook]})[0] == 201
    keepers = [
        CertificateKeeper(
            cluster, namespace="identity-system", secret="tls", names=["hub.x.svc"], webhook_configuration="identity"
        )
        for _ in range(3)
    ]
    # An old operator may still run when the new one begins.
    for keeper in keepers:
        await keeper.ensure()
    data = api.call("GET", f"{secrets}/tls")[1]["data"]
    written = base64.b64decode(data["tls.crt"])
    assert {keeper.current().certificate_chain for keeper in keepers} == {written}
    authority = base64.b64decode(data["ca.crt"])
    x509.load_pem_x509_certificate(written).verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    (trusted,) = api.call("GET", f"{hooks}/identity")[1]["webhooks"]
    assert base64.b64decode(trusted["clientConfig"]["caBundle"]) == authority
    assert trusted["rules"][0]["resources"] == ["pods"]
    assert api.call("DELETE", f"{hooks}/identity")[0] == 200
