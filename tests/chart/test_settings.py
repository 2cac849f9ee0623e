"""The chart's settings of the processes, read by their own code."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.process.settings import list_settings
from fleetprof_operator.analyses.analyzer_job import RELEASE_LABEL
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from fleetprof_operator.identity.main import CertificateSettings
from fleetprof_operator.identity.main import read_settings as read_certificate_settings
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings
from fleetprof_operator.injection.webhook_settings import WebhookSettings
from fleetprof_operator.injection.webhook_settings import read_settings as read_webhook_settings
from fleetprof_operator.settings import Settings, read_settings
from fleetprof_store.location import StoreLocation, parse_location
from fleetprof_webui.cluster.settings import Settings as WebUiSettings
from fleetprof_webui.cluster.settings import read_settings as read_webui_settings
from harness.kubernetes.chart import NAMESPACE, OIDC, S3, VALUE_SETS, Objects, render

pytestmark = pytest.mark.helm

STORE = "FLEETPROF_STORE"


def environment(objects: Objects, name: str) -> dict[str, Any]:
    """A component's environment; what comes from elsewhere as its source."""
    (template,) = (template for owner, template in objects.pods() if owner == name)
    (container,) = template["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_operator_understands_what_it_is_told(name: str, tmp_path: Path) -> None:
    objects = render(VALUE_SETS[name])
    (deployment,) = (item for key, item in objects.of_kind("Deployment").items() if key.endswith("-operator"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    mounted = {}
    for flag, ending, file in (("ANALYZER_POD", "-analyzer", "pod.yaml"), ("BOUNDS", "-bounds", "bounds.yaml")):
        (text,) = (c["data"][file] for key, c in objects.of_kind("ConfigMap").items() if key.endswith(ending))
        path = tmp_path / file
        path.write_text(text)
        mounted[f"FLEETPROF_{flag}"] = str(path)
    if "FLEETPROF_STORE_AUTHORITY" in variables:
        authority = tmp_path / "ca.crt"
        authority.write_bytes(renew_certificates(Certificates(), ["s3.corp"], datetime.now(UTC)).ca_crt)
        mounted["FLEETPROF_STORE_AUTHORITY"] = str(authority)
    settings = read_settings([], variables | {"FLEETPROF_NAMESPACE": NAMESPACE} | mounted)
    assert settings.bounds.of("team-a").max_iterations == (50 if name == "bounds" else 100)
    assert settings.namespaces == tuple(
        variables["FLEETPROF_NAMESPACES"].split(",") if variables["FLEETPROF_NAMESPACES"] else ()
    )
    assert settings.tls_names[0].endswith(f"-hub.{NAMESPACE}.svc")
    assert settings.analyzer_pod == objects.analyzer_pod()
    assert (settings.max_captures, settings.max_captures_per_namespace) == (200, 20)
    assert (settings.analysis_max_parallelism, settings.max_analyses_per_namespace) == (32, 4)
    assert settings.analysis_max_resources == {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "16Gi"}
    name = deployment["metadata"]["name"].removesuffix("-operator")
    assert settings.owner == f"{NAMESPACE}/{name}"
    assert settings.figures_account == f"{name}-top"
    assert settings.account_name.startswith(f"system:serviceaccount:{NAMESPACE}:")
    assert settings.analyzer_pod is not None
    assert settings.analyzer_pod["metadata"]["labels"][RELEASE_LABEL] == name  # by which an uninstall knows them
    known = {row.variable for row in list_settings(Settings)} | {"FLEETPROF_POD_IP"}  # a part of `advertise`
    assert {key for key in variables if key.startswith("FLEETPROF_")} <= known


def variables(table: type) -> set[str]:
    """The variables of a process's settings."""
    return {row.variable for row in list_settings(table)}


def test_sidecars_are_told_where_their_nodes_exporter_is() -> None:
    variables = environment(render(VALUE_SETS["DCGM"]), "fleetprof-webhook")
    assert read_webhook_settings([], variables).sidecar.dcgm_url == "http://$(FLEETPROF_NODE_IP):9400/metrics"


def test_the_webhook_understands_what_it_is_told() -> None:
    environ = environment(render(), "fleetprof-webhook")
    settings = read_webhook_settings([], environ | {"FLEETPROF_HUB_SERVICE_HOST": "10.0.0.1"})
    assert settings.sidecar == InjectionSettings(
        image="ghcr.io/fleetprof/sidecar:0.1.0",
        hub=f"fleetprof-hub.{NAMESPACE}.svc:8443",
        hub_ip="10.0.0.1",  # of the Service's own variable
        ca=settings.sidecar.ca,
    )
    assert set(environ) <= variables(WebhookSettings)


@pytest.mark.parametrize(
    ("values", "host"),
    [
        (VALUE_SETS["bundled store"], f"fleetprof-store.{NAMESPACE}.svc"),
        ((*S3, "store.s3.endpoint=https://minio.minio.svc.cluster.local:9000"), "minio.minio.svc.cluster.local"),
        ((*S3, "store.s3.endpoint=http://minio.minio.svc"), "minio.minio.svc"),
        ((*S3, "store.s3.endpoint=https://s3.corp.svcs.example.com"), None),
        (VALUE_SETS["MinIO"], None),
        (S3, None),
    ],
)
def test_the_webhook_hears_of_a_store_that_the_cluster_alone_knows(values: tuple[str, ...], host: str | None) -> None:
    variables = environment(render(values), "fleetprof-webhook")
    assert variables.get("FLEETPROF_STORE_HOST") == host
    assert read_webhook_settings([], variables).sidecar.store_host == (host or "")


def test_what_keeps_the_certificates_understands_what_it_is_told() -> None:
    environ = environment(render(), "fleetprof-certificates")
    settings = read_certificate_settings([], environ | {"FLEETPROF_NAMESPACE": NAMESPACE})
    assert settings.tls_secret == "fleetprof-webhook-tls"
    assert f"fleetprof-webhook.{NAMESPACE}.svc" in settings.tls_names
    assert set(environ) <= variables(CertificateSettings)


@pytest.mark.parametrize("name", [name for name in VALUE_SETS if name.startswith("web UI")])
def test_the_web_ui_understands_what_it_is_told(name: str, tmp_path: Path) -> None:
    environ = environment(render(VALUE_SETS[name]), "fleetprof-webui")
    (tmp_path / "secret").write_text("s")
    of_kubernetes = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    given = {key: value for key, value in environ.items() if isinstance(value, str)}
    if "FLEETPROF_CATALOG" not in given:
        assert environ["FLEETPROF_CATALOG"] == {"secretKeyRef": {"name": "catalog", "key": "url"}}
        given["FLEETPROF_CATALOG"] = "postgresql://a@b/c"
    if "FLEETPROF_OIDC_CLIENT_SECRET_FILE" in given:
        given["FLEETPROF_OIDC_CLIENT_SECRET_FILE"] = str(tmp_path / "secret")
    settings = read_webui_settings([], given | of_kubernetes)
    assert (settings.provider is None) == ("proxy" in name or "kubectl" in name)
    assert settings.kubectl_sign_in is ("kubectl" in name)
    if settings.provider is not None:
        assert settings.provider.scopes == ("openid", "email", "groups")
        assert settings.provider.issuer == "https://idp.example:8443/realm"
    assert settings.store == parse_location(environment(render(VALUE_SETS[name]), "fleetprof-operator")[STORE])
    assert {key for key in environ if key.startswith("FLEETPROF_")} <= variables(WebUiSettings)


@pytest.mark.parametrize(
    ("values", "template"),
    [
        (S3, None),
        (OIDC, "https://ui.example/reports/{namespace}/{uid}"),
        ((*OIDC, "operator.reportUrl=https://portal.example/{uid}"), "https://portal.example/{uid}"),
    ],
)
def test_the_operator_knows_the_web_ui_s_address(values: tuple[str, ...], template: str | None) -> None:
    assert environment(render(values), "fleetprof-operator").get("FLEETPROF_REPORT_URL") == template


@pytest.mark.parametrize(
    ("values", "user", "limits"),
    [
        ((), 65532, {"cpu": "1", "memory": "384Mi"}),
        (("sidecar.user=1000",), 1000, {"cpu": "1", "memory": "384Mi"}),
        (("sidecar.user=", "sidecar.resources.limits.memory=1Gi"), None, {"cpu": "1", "memory": "1Gi"}),
    ],
)
def test_the_sidecar_is_as_told(values: tuple[str, ...], user: int | None, limits: dict[str, str]) -> None:
    sidecar = read_webhook_settings([], environment(render((*S3, *values)), "fleetprof-webhook")).sidecar
    assert (sidecar.run_as_user, sidecar.resources.limits) == (user, limits)


@pytest.mark.parametrize(
    ("name", "namespaces"), [("S3", ""), ("namespaced", NAMESPACE), ("two namespaces", "team-a,team-b")]
)
def test_operator_and_hook_know_where_they_serve(name: str, namespaces: str) -> None:
    for part in ("fleetprof-operator", "fleetprof-release"):
        assert environment(render(VALUE_SETS[name]), part)["FLEETPROF_NAMESPACES"] == namespaces


@pytest.mark.parametrize(
    ("values", "location"),
    [
        (("store.s3.bucket=traces",), StoreLocation(bucket="traces")),
        (S3, StoreLocation(bucket="traces", region="eu-central-1")),
        (
            ("store.s3.bucket=traces", "store.s3.prefix=a/b", "store.s3.endpoint=https://minio.example:9000"),
            StoreLocation(bucket="traces", prefix="a/b", endpoint="https://minio.example:9000"),
        ),
        (("store.s3.bucket=traces", "store.s3.addressing=path"), StoreLocation(bucket="traces", path_style=True)),
        (
            (*S3, "store.s3.endpoint=http://ceph", "store.s3.addressing=virtual"),
            StoreLocation(bucket="traces", endpoint="http://ceph", region="eu-central-1", path_style=False),
        ),
        (
            ("store.bundled.enabled=true",),
            StoreLocation(bucket="fleetprof", endpoint=f"http://fleetprof-store.{NAMESPACE}.svc:7070"),
        ),
    ],
)
def test_the_operator_is_told_of_the_store_in_the_form_that_it_reads(
    values: tuple[str, ...], location: StoreLocation
) -> None:
    assert parse_location(environment(render(values), "fleetprof-operator")["FLEETPROF_STORE"]) == location


def test_operator_and_web_ui_are_told_the_same_of_the_cluster_s_name() -> None:
    objects = render(VALUE_SETS["one of several clusters"])
    environments = [environment(objects, f"fleetprof-{part}") for part in ("operator", "webui")]
    assert [variables["FLEETPROF_CLUSTER"] for variables in environments] == ["east", "east"]
    assert environments[0]["FLEETPROF_STORE"] == environments[1]["FLEETPROF_STORE"]


@pytest.mark.parametrize(
    ("name", "operator"),
    [("S3", None), ("S3 with roles", None), ("S3 with Secrets", "writer"), ("bundled store", "fleetprof-store")],
)
def test_credentials_come_from_secrets_or_not_at_all(name: str, operator: str | None) -> None:
    for part, secret in (("fleetprof-operator", operator), ("analyzer Jobs", None)):
        found = {key: value for key, value in environment(render(VALUE_SETS[name]), part).items() if key[:3] == "AWS"}
        expected = {
            key: {"secretKeyRef": {"name": secret, "key": key}}
            for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
            if secret
        }
        assert found == expected
