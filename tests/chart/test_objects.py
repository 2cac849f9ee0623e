"""Values in, objects out: what each switch makes of a release."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from chart import NAMESPACE, S3, VALUE_SETS, Objects, render
from fleetprof_api import pods
from fleetprof_api.store.location import StoreLocation, parse_location
from fleetprof_operator.injection import webhook_settings
from fleetprof_operator.injection.settings import InjectionSettings
from fleetprof_operator.injection.webhook_settings import read_settings as read_webhook_settings
from fleetprof_operator.requests.settings import read_settings

pytestmark = pytest.mark.cluster


def environment(objects: Objects, name: str) -> dict:
    """A component's environment; what comes from elsewhere as its source."""
    (template,) = (template for owner, template in objects.pods() if owner == name)
    (container,) = template["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


# What a switch adds to, or takes from, a release with nothing but a bucket.
KINDS = {
    "S3": {},
    "bundled store": {
        "Deployment": {"+fleetprof-store"},
        "Service": {"+fleetprof-store"},
        "Secret": {"+fleetprof-store"},
        "PersistentVolumeClaim": {"+fleetprof-store"},
        "NetworkPolicy": {"+fleetprof-store"},
    },
    "bundled store without a volume": {
        "Deployment": {"+fleetprof-store"},
        "Service": {"+fleetprof-store"},
        "Secret": {"+fleetprof-store"},
        "NetworkPolicy": {"+fleetprof-store"},
    },
    "no webhook": {
        "Deployment": {"-fleetprof-webhook"},
        "Service": {"-fleetprof-webhook"},
        "ServiceAccount": {"-fleetprof-webhook"},
        "PodDisruptionBudget": {"-fleetprof-webhook"},
        "NetworkPolicy": {"-fleetprof-webhook"},
        "ClusterRole": {"-fleetprof-webhook"},
        "ClusterRoleBinding": {"-fleetprof-webhook"},
        "MutatingWebhookConfiguration": {"-fleetprof"},
    },
    "no CRD": {"CustomResourceDefinition": {"-profilerequests.fleetprof.io"}},
    "no policies, no budgets": {
        "NetworkPolicy": {f"-fleetprof-{part}" for part in ("analyzer", "operator", "release", "webhook")},
        "PodDisruptionBudget": {"-fleetprof-operator", "-fleetprof-webhook"},
    },
    "monitored": {"ServiceMonitor": {"+fleetprof"}},
    "cert-manager": {
        "Secret": {"-fleetprof-tls"},
        "Issuer": {"+fleetprof-selfsigned", "+fleetprof-ca"},
        "Certificate": {"+fleetprof-ca", "+fleetprof-tls"},
    },
    "cert-manager with an issuer": {"Secret": {"-fleetprof-tls"}, "Certificate": {"+fleetprof-tls"}},
    "accounts of others": {"ServiceAccount": {f"-fleetprof-{part}" for part in ("analyzer", "operator", "webhook")}},
    "no rights": {
        "ClusterRole": {f"-fleetprof-{part}" for part in ("editor", "operator", "viewer", "webhook")},
        "ClusterRoleBinding": {"-fleetprof-operator", "-fleetprof-webhook"},
        "Role": {"-fleetprof-operator-own"},
        "RoleBinding": {"-fleetprof-operator-own"},
    },
}


@pytest.mark.parametrize("name", KINDS)
def test_a_switch_adds_and_takes_exactly_these_objects(name: str) -> None:
    def names(objects: Objects) -> set[tuple[str, str]]:
        return {(item["kind"], item["metadata"]["name"]) for item in objects.items}

    bare, found = names(render(S3)), names(render(VALUE_SETS[name]))
    expected = {(kind, name[1:]) for kind, changes in KINDS[name].items() for name in changes if name[0] == "+"}
    taken = {(kind, name[1:]) for kind, changes in KINDS[name].items() for name in changes if name[0] == "-"}
    assert (found - bare, bare - found) == (expected, taken)


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_object_is_labelled_and_names_no_namespace_without_need(name: str) -> None:
    for item in render(VALUE_SETS[name]).items:
        labels = item["metadata"]["labels"]
        where = f"{item['kind']} {item['metadata']['name']}"
        assert labels["app.kubernetes.io/name"] == "fleetprof", where
        assert labels["app.kubernetes.io/instance"] == "fleetprof", where
        assert labels["app.kubernetes.io/managed-by"] == "Helm", where
        assert {"app.kubernetes.io/component", "app.kubernetes.io/version", "helm.sh/chart"} <= labels.keys(), where
        # Rights in the namespaces that are served have to be made there.
        assert "namespace" not in item["metadata"] or item["kind"] in ("Role", "RoleBinding"), where


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_selector_finds_its_pods_and_no_others(name: str) -> None:
    objects = render(VALUE_SETS[name])
    pods = {owner: template["metadata"]["labels"].items() for owner, template in objects.pods()}
    selectors = {}
    for item in objects.items:
        selector = item.get("spec", {}).get("selector", item.get("spec", {}).get("podSelector"))
        if selector and item["kind"] not in ("ServiceMonitor", "PersistentVolumeClaim"):
            selectors[f"{item['kind']} {item['metadata']['name']}"] = selector.get("matchLabels", selector)
    assert len(selectors) >= 4
    for where, selector in selectors.items():
        found = [owner for owner, labels in pods.items() if selector.items() <= labels]
        assert len(found) == 1, f"{where} finds {found}"


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
def test_operator_and_analyzer_are_told_of_the_store_in_the_form_that_they_read(values, location) -> None:
    for name in ("fleetprof-operator", "analyzer Jobs"):
        assert parse_location(environment(render(values), name)["FLEETPROF_STORE"]) == location


@pytest.mark.parametrize(
    ("name", "operator", "analyzer"),
    [
        ("S3", None, None),
        ("S3 with roles", None, None),
        ("S3 with Secrets", "writer", "reader"),
        ("bundled store", "fleetprof-store", "fleetprof-store"),
    ],
)
def test_credentials_come_from_secrets_or_not_at_all(name: str, operator: str | None, analyzer: str | None) -> None:
    for part, secret in (("fleetprof-operator", operator), ("analyzer Jobs", analyzer)):
        found = {key: value for key, value in environment(render(VALUE_SETS[name]), part).items() if key[:3] == "AWS"}
        expected = {
            key: {"secretKeyRef": {"name": secret, "key": key}}
            for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
            if secret
        }
        assert found == expected


def test_roles_are_annotations_of_the_accounts() -> None:
    accounts = render(VALUE_SETS["S3 with roles"]).of_kind("ServiceAccount")
    assert {name: account["metadata"].get("annotations") for name, account in accounts.items()} == {
        "fleetprof-operator": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/writer"},
        "fleetprof-analyzer": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/reader"},
        "fleetprof-webhook": None,
    }


def test_the_bundled_store_s_credentials_are_random_and_stay_with_its_data() -> None:
    def secret(name: str, *options: str) -> dict:
        return render(VALUE_SETS[name], *options).one("Secret", "fleetprof-store")

    one, other = secret("bundled store"), secret("bundled store", "--debug")
    assert one["data"] != other["data"]
    assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    claim = render(VALUE_SETS["bundled store"]).one("PersistentVolumeClaim", "fleetprof-store")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in secret("bundled store without a volume")["metadata"]


def test_the_certificates_secret_has_no_content_that_an_upgrade_could_put_back() -> None:
    secret = render().one("Secret", "fleetprof-tls")
    assert secret.keys() == {"apiVersion", "kind", "metadata", "type"}


def test_the_crd_is_kept_when_the_release_goes() -> None:
    (crd,) = render().of_kind("CustomResourceDefinition").values()
    assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(("version", "there"), [("1.28.0", False), ("1.30.0", True), ("1.36.3", True)])
def test_an_older_api_server_is_given_no_field_that_it_does_not_know(version: str, there: bool) -> None:
    (crd,) = render(S3, f"--kube-version={version}").of_kind("CustomResourceDefinition").values()
    assert ("selectableFields" in crd["spec"]["versions"][0]) == there


def test_cert_manager_makes_the_secret_that_we_would_and_the_ca_reaches_the_webhook() -> None:
    own = render(VALUE_SETS["cert-manager"])
    certificate = own.one("Certificate", "fleetprof-tls")["spec"]
    assert certificate["secretName"] == "fleetprof-tls"
    assert certificate["dnsNames"] == [f"fleetprof-hub.{NAMESPACE}.svc", f"fleetprof-webhook.{NAMESPACE}.svc"]
    assert certificate["issuerRef"] == {"name": "fleetprof-ca", "kind": "Issuer", "group": "cert-manager.io"}
    annotations = own.one("MutatingWebhookConfiguration", "fleetprof")["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/fleetprof-tls"}
    theirs = render(VALUE_SETS["cert-manager with an issuer"]).one("Certificate", "fleetprof-tls")["spec"]
    assert theirs["issuerRef"] == {"name": "ours", "kind": "ClusterIssuer", "group": "cert-manager.io"}


# ---------------------------------------------------------------- the webhook: whose pods it is asked about


def matches(selector: dict, labels: dict[str, str]) -> bool:
    """Kubernetes' own meaning of a selector's expressions."""
    assert selector.keys() == {"matchExpressions"}
    tests: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
    }
    return all(tests[rule["operator"]](rule["key"], rule["values"]) for rule in selector["matchExpressions"])


ON, OFF = {"fleetprof.io/inject": "true"}, {"fleetprof.io/inject": "false"}


@pytest.mark.parametrize(
    ("namespace", "labels", "pod", "calls"),
    [
        ("team-a", {}, {}, 0),
        ("team-a", {}, ON, 1),
        ("team-a", ON, {}, 1),
        ("team-a", ON, ON, 1),
        ("team-a", ON, OFF, 0),
        ("team-a", OFF, ON, 1),
        ("kube-system", ON, ON, 0),
        (NAMESPACE, ON, ON, 0),
    ],
)
def test_the_webhook_is_asked_once_about_a_labelled_pod_and_never_about_others(namespace, labels, pod, calls) -> None:
    webhooks = render().one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
    asked = [
        webhook["name"]
        for webhook in webhooks
        if webhook["rules"][0]["resources"] == ["pods"]
        and matches(webhook["namespaceSelector"], labels | {"kubernetes.io/metadata.name": namespace})
        and matches(webhook["objectSelector"], pod)
    ]
    assert len(asked) == calls


def test_the_requester_is_asked_about_by_the_name_that_the_webhook_writes() -> None:
    (webhook,) = (
        webhook
        for webhook in render().one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
        if webhook["rules"][0]["resources"] == ["profilerequests"]
    )
    (condition,) = webhook["matchConditions"]
    assert set(re.findall("'(fleetprof.io/[^']+)'", condition["expression"])) == {pods.REQUESTED_BY_ANNOTATION}


def test_no_pod_fails_or_waits_because_of_us_and_no_request_goes_unsigned() -> None:
    webhooks = render().one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
    behaviour = {
        webhook["rules"][0]["resources"][0]: (
            webhook["failurePolicy"],
            webhook["timeoutSeconds"],
            webhook["sideEffects"],
        )
        for webhook in webhooks
    }
    assert behaviour == {"pods": ("Ignore", 2, "None"), "profilerequests": ("Fail", 5, "None")}
    assert all("caBundle" not in webhook["clientConfig"] for webhook in webhooks)
    assert len({webhook["name"] for webhook in webhooks}) == len(webhooks)


# ---------------------------------------------------------------- network policies


def reach(objects: Objects, component: str) -> set[tuple[int, str]]:
    """(port, to whom) of a component's egress."""
    policy = objects.one("NetworkPolicy", f"fleetprof-{component}")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    whom = set()
    for rule in policy["egress"]:
        for peer in rule.get("to", [None]):
            to = "anywhere" if peer is None else peer.get("ipBlock", {}).get("cidr") or "store"
            whom |= {(port["port"], to) for port in rule["ports"]}
    return whom


NAMES = (53, "anywhere")
API = {(443, "anywhere"), (6443, "anywhere")}


@pytest.mark.parametrize(
    ("name", "component", "expected"),
    [
        ("S3", "operator", {NAMES, *API}),
        ("S3", "webhook", {NAMES, *API}),
        ("S3", "release", {NAMES, *API}),
        ("S3", "analyzer", {NAMES, (443, "anywhere")}),
        ("MinIO", "operator", {NAMES, *API, (9000, "anywhere")}),
        ("MinIO", "analyzer", {NAMES, (9000, "anywhere")}),
        ("bundled store", "analyzer", {NAMES, (7070, "store")}),
        ("bundled store", "store", set()),
        ("narrow network", "analyzer", {NAMES, (443, "10.0.0.0/8"), (80, "169.254.170.23/32")}),
        ("narrow network", "webhook", {NAMES, *API}),
    ],
)
def test_each_component_reaches_what_it_needs(name: str, component: str, expected: set[tuple[int, str]]) -> None:
    assert reach(render(VALUE_SETS[name]), component) == expected


def test_sidecars_reach_hub_and_store_from_everywhere_and_nobody_reaches_the_analyzer() -> None:
    objects = render(VALUE_SETS["bundled store"])

    def open_ports(component: str) -> set[int]:
        rules = objects.one("NetworkPolicy", f"fleetprof-{component}")["spec"]["ingress"]
        return {port["port"] for rule in rules if "from" not in rule for port in rule["ports"]}

    found = {name: open_ports(name) for name in ("operator", "webhook", "store", "analyzer", "release")}
    assert found == {"operator": {8443}, "webhook": {9443}, "store": {7070}, "analyzer": set(), "release": set()}


@pytest.mark.parametrize("name", VALUE_SETS)
def test_services_and_policies_name_ports_that_containers_open(name: str) -> None:
    objects = render(VALUE_SETS[name])
    opened: dict[str, dict[str, int]] = {}
    for _, template in objects.pods():
        ports = template["spec"]["containers"][0].get("ports", [])
        component = template["metadata"]["labels"]["app.kubernetes.io/component"]
        opened[component] = {port["name"]: port["containerPort"] for port in ports}
    for service in objects.of_kind("Service").values():
        component = service["spec"]["selector"]["app.kubernetes.io/component"]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= opened[component].keys()
    for policy in objects.of_kind("NetworkPolicy").values():
        component = policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        allowed = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        assert allowed == set(opened[component].values())


# ---------------------------------------------------------------- the rest


def test_the_release_hook_runs_before_the_operator_goes_and_leaves_nothing() -> None:
    job = render().one("Job", "fleetprof-release")
    assert job["metadata"]["annotations"] == {
        "helm.sh/hook": "pre-delete",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    assert 0 < job["spec"]["activeDeadlineSeconds"] < 300  # Helm waits five minutes by default
    spec = job["spec"]["template"]["spec"]
    assert spec["containers"][0]["command"] == ["fleetprof-operator", "release"]
    assert spec["serviceAccountName"] == "fleetprof-operator"


@pytest.mark.parametrize(
    ("name", "namespaces"), [("S3", ""), ("namespaced", NAMESPACE), ("two namespaces", "team-a,team-b")]
)
def test_operator_and_hook_know_where_they_serve(name: str, namespaces: str) -> None:
    for part in ("fleetprof-operator", "fleetprof-release"):
        assert environment(render(VALUE_SETS[name]), part)["FLEETPROF_NAMESPACES"] == namespaces


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_operator_understands_what_it_is_told(name: str, tmp_path: Path) -> None:
    objects = render(VALUE_SETS[name])
    (deployment,) = (item for key, item in objects.of_kind("Deployment").items() if key.endswith("-operator"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    told = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    template = tmp_path / "pod.yaml"
    template.write_text(objects.of_kind("ConfigMap").popitem()[1]["data"]["pod.yaml"])
    settings = read_settings([], told | {"FLEETPROF_NAMESPACE": NAMESPACE, "FLEETPROF_ANALYZER_POD": str(template)})
    assert settings.namespaces == tuple(told["FLEETPROF_NAMESPACES"].split(",") if told["FLEETPROF_NAMESPACES"] else ())
    assert settings.tls_names[0].endswith(f"-hub.{NAMESPACE}.svc")
    assert (settings.hub_listen.port, settings.http_listen.port) == (8443, 8080)
    assert settings.analyzer_pod == objects.analyzer_pod()
    assert (settings.max_captures, settings.max_captures_per_namespace) == (200, 20)
    known = {f"FLEETPROF_{field.name.upper()}" for field in dataclasses.fields(settings)}
    assert {key for key in told if key.startswith("FLEETPROF_")} <= known


def test_the_webhook_understands_what_it_is_told() -> None:
    told = environment(render(), "fleetprof-webhook")
    settings = read_webhook_settings(told | {"FLEETPROF_HUB_SERVICE_HOST": "10.0.0.1"})
    assert (settings.listen[1], settings.health_listen[1]) == (9443, 8080)
    assert settings.sidecar == InjectionSettings(
        image="ghcr.io/fleetprof/sidecar:0.1.0",
        hub=f"fleetprof-hub.{NAMESPACE}.svc:8443",
        hub_ip="10.0.0.1",  # of the Service's own variable
        ca=settings.sidecar.ca,
    )
    assert set(told) <= set(re.findall("FLEETPROF_[A-Z_]+", str(webhook_settings.__doc__)))


@pytest.mark.parametrize(
    ("values", "user", "limits"),
    [
        ((), 65532, {"cpu": "1", "memory": "384Mi"}),
        (("sidecar.user=1000",), 1000, {"cpu": "1", "memory": "384Mi"}),
        (("sidecar.user=", "sidecar.resources.limits.memory=1Gi"), None, {"cpu": "1", "memory": "1Gi"}),
    ],
)
def test_the_sidecar_is_as_told(values: tuple[str, ...], user: int | None, limits: dict[str, str]) -> None:
    sidecar = read_webhook_settings(environment(render((*S3, *values)), "fleetprof-webhook")).sidecar
    assert (sidecar.run_as_user, sidecar.resources.limits) == (user, limits)


@pytest.mark.parametrize(
    ("release", "values", "expected"),
    [
        ("fleetprof", (), "fleetprof"),
        ("my-fleetprof", (), "my-fleetprof"),
        ("ml", (), "ml-fleetprof"),
        ("ml", ("fullnameOverride=profiler",), "profiler"),
        ("a" * 53, (), "a" * 40),
    ],
)
def test_every_name_begins_with_the_release_s(release: str, values: tuple[str, ...], expected: str) -> None:
    objects = render((*S3, *values), release=release)
    for item in objects.items:
        if item["kind"] != "CustomResourceDefinition":
            assert re.fullmatch(rf"{expected}(-[a-z-]+)?", item["metadata"]["name"]), item["metadata"]["name"]
            assert len(item["metadata"]["name"]) <= 63


def test_prometheus_is_sent_to_the_metrics_of_operator_and_webhook() -> None:
    objects = render(VALUE_SETS["monitored"])
    monitor = objects.one("ServiceMonitor", "fleetprof")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    selector = monitor["spec"]["selector"]
    (endpoint,) = monitor["spec"]["endpoints"]
    ports = {
        name: port["port"]
        for name, service in objects.of_kind("Service").items()
        if selector["matchLabels"].items() <= service["metadata"]["labels"].items()
        and matches({"matchExpressions": selector["matchExpressions"]}, service["metadata"]["labels"])
        for port in service["spec"]["ports"]
        if port["name"] == endpoint["port"]
    }
    assert ports == {"fleetprof-metrics": 8080, "fleetprof-webhook": 8080}
