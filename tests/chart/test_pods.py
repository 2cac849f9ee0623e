"""Every pod that the chart makes, with every set of values: restricted, bounded, and holding no more than it needs."""

import pytest
from fleetprof_api.pods import ANALYSIS_AUDIENCE, AUDIENCE, IDENTITY_DIRECTORY
from harness.kubernetes.chart import MOUNTS, NAMESPACE, OIDC, PLACES, PROXIED, VALUE_SETS, ValuesRefused, render

pytestmark = pytest.mark.helm

CASES = [pytest.param(values, id=name) for name, values in VALUE_SETS.items()]


@pytest.mark.parametrize("values", CASES)
def test_every_container_is_restricted_and_bounded(values: tuple[str, ...]) -> None:
    for owner, template in render(values).pods():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, owner
        # Of our images the uid is 65532, or what admission gives; the store's image has none.
        assert spec["securityContext"].get("runAsUser") == (65532 if owner.endswith("-store") else None), owner
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, owner
        # Kubernetes' own FLEETPROF_HUB_PORT=tcp://… and the like are no settings; the webhook wants the hub's address.
        assert spec["enableServiceLinks"] is owner.endswith("-webhook"), owner
        assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & spec.keys(), owner
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            where = f"{owner}/{container['name']}"
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, where
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), where
            assert "memory" in container["resources"]["limits"], where
            assert ":" in container["image"], where
            assert not any("hostPort" in port for port in container.get("ports", [])), where
        for volume in spec.get("volumes", []):
            kinds = {"emptyDir", "secret", "configMap", "persistentVolumeClaim", "projected"}
            assert volume.keys() - {"name"} <= kinds, owner


@pytest.mark.parametrize("values", CASES)
def test_what_runs_on_and_on_is_probed(values: tuple[str, ...]) -> None:
    for name, deployment in render(values).of_kind("Deployment").items():
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            assert {"livenessProbe", "readinessProbe"} <= container.keys(), name
            ports = {port["name"] for port in container["ports"]}
            for probe in ("livenessProbe", "readinessProbe"):
                assert container[probe]["httpGet"]["port"] in ports, name


@pytest.mark.parametrize("values", CASES)
def test_every_volume_is_mounted_and_every_mount_has_its_volume(values: tuple[str, ...]) -> None:
    for owner, template in render(values).pods():
        spec = template["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        mounted = {mount["name"] for container in containers for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in spec.get("volumes", [])}, owner


def test_only_who_speaks_to_the_api_server_holds_a_token() -> None:
    holds = {
        owner: template["spec"]["automountServiceAccountToken"]
        for owner, template in render(VALUE_SETS["web UI by port-forward"]).pods()
    }
    assert holds == {
        "fleetprof-operator": True,
        "fleetprof-webhook": True,
        "fleetprof-release": True,
        "fleetprof-test": True,
        "fleetprof-certificates": True,
        "fleetprof-webui": True,
        "fleetprof-store": False,
        "analyzer Jobs": False,
    }


@pytest.mark.attack
@pytest.mark.parametrize("values", CASES)
def test_only_operator_and_web_ui_hold_the_store_s_credentials(values: tuple[str, ...]) -> None:
    """The store itself has them by other names."""
    for owner, template in render(values).pods():
        if not owner.endswith(("-operator", "-webui", "-store")):
            names = {item["name"] for each in template["spec"]["containers"] for item in each.get("env", [])}
            assert not any(name.startswith("AWS_") for name in names), owner
            assert "FLEETPROF_STORE" not in names, owner


@pytest.mark.attack
@pytest.mark.parametrize("values", CASES)
def test_an_analysis_holds_a_token_for_the_operator_alone(values: tuple[str, ...]) -> None:
    objects = render(values)
    spec = objects.analyzer_pod()["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes.keys() - {"store-authority"} == {"identity"}
    token, authority = volumes["identity"]["projected"]["sources"]
    assert token["serviceAccountToken"]["audience"] == ANALYSIS_AUDIENCE
    assert str(ANALYSIS_AUDIENCE) != AUDIENCE
    assert [item["key"] for item in authority["secret"]["items"]] == ["ca.crt"]
    (container,) = spec["containers"]
    assert {"name": "identity", "mountPath": IDENTITY_DIRECTORY, "readOnly": True} in container["volumeMounts"]
    variables = {item["name"]: item["value"] for item in container["env"]}
    assert variables.keys() - {"SSL_CERT_FILE"} == {"FLEETPROF_HUB"}
    assert variables["FLEETPROF_HUB"].partition(":")[0].endswith(f"-hub.{NAMESPACE}.svc")
    account = objects.of_kind("ServiceAccount").get(spec["serviceAccountName"], {"metadata": {}})
    assert "annotations" not in account["metadata"]  # no cloud's role comes in by one


@pytest.mark.attack
def test_hub_and_webhook_have_keys_of_their_own_and_nobody_mounts_an_authority_s() -> None:
    for name in ("S3", "cert-manager"):
        for owner, template in render(VALUE_SETS[name]).pods():
            for volume in template["spec"].get("volumes", []):
                if "secret" in volume and not owner.endswith("-webui"):
                    keys = {item["key"] for item in volume["secret"]["items"]}
                    of_hub = volume["secret"]["secretName"] == "fleetprof-tls"
                    # The webhook gives the hub's authority to sidecars, and holds none of the hub's keys.
                    only_authority = of_hub and owner == "fleetprof-webhook"
                    assert keys == ({"ca.crt"} if only_authority else {"tls.crt", "tls.key"}), owner
                    assert of_hub or owner == "fleetprof-webhook", owner


def test_one_operator_at_a_time_and_two_webhooks() -> None:
    objects = render()
    operator = objects.one("Deployment", "fleetprof-operator")["spec"]
    assert (operator["replicas"], operator["strategy"]) == (1, {"type": "Recreate"})
    webhook = objects.one("Deployment", "fleetprof-webhook")["spec"]
    assert webhook["replicas"] == 2
    assert webhook["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


@pytest.mark.parametrize("part", ["operator", "webhook", "webui"])
def test_replicas_go_to_nodes_of_their_own_if_possible(part: str) -> None:
    made = render(OIDC).one("Deployment", f"fleetprof-{part}")["spec"]
    (spread,) = made["template"]["spec"]["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    assert spread["labelSelector"]["matchLabels"] == made["selector"]["matchLabels"]


def test_no_budget_blocks_a_drain() -> None:
    budgets = render().of_kind("PodDisruptionBudget")
    assert set(budgets) == {"fleetprof-operator", "fleetprof-webhook"}
    for budget in budgets.values():
        assert budget["spec"]["maxUnavailable"] == 1
        assert "minAvailable" not in budget["spec"]
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_pods_are_placed_as_told() -> None:
    for owner, template in render(VALUE_SETS["placed"]).pods():
        spec = template["spec"]
        assert spec["imagePullSecrets"] == [{"name": "mirror"}], owner
        assert spec["priorityClassName"] == "low", owner
        assert spec["nodeSelector"] == {"pool": "cpu"}, owner
        assert spec["tolerations"] == [{"operator": "Exists"}], owner


@pytest.mark.parametrize("part", ["operator", "webhook", "webui"])
def test_a_site_gives_affinity_and_spread(part: str) -> None:
    template = dict(render((*OIDC, *(f"pods.{value}" for value in PLACES))).pods())[f"fleetprof-{part}"]
    spec, labels = template["spec"], template["metadata"]["labels"]
    (preferred,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchFields"][0]["values"] == ["node-1"]
    (spread,) = spec["topologySpreadConstraints"]
    # Without a selector Kubernetes would count no pod.
    selected = spread.pop("labelSelector")["matchLabels"]
    assert selected.items() <= labels.items()
    assert selected["app.kubernetes.io/component"] == part
    assert spread == {
        "maxSkew": 2,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
    }


@pytest.mark.parametrize("part", ["operator", "analyzer", "webui"])
def test_a_site_gives_a_component_environment(part: str) -> None:
    pods = dict(render((*OIDC, *(f"{part}.{value}" for value in PROXIED))).pods())
    (container,) = pods["analyzer Jobs" if part == "analyzer" else f"fleetprof-{part}"]["spec"]["containers"]
    assert {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"} in container["env"]


def test_a_site_gives_the_operator_volumes() -> None:
    spec = dict(render((*OIDC, *(f"operator.{value}" for value in MOUNTS))).pods())["fleetprof-operator"]["spec"]
    (container,) = spec["containers"]
    assert {"name": "corporate", "mountPath": "/etc/corporate"} in container["volumeMounts"]
    assert {"name": "corporate", "configMap": {"name": "corporate-ca"}} in spec["volumes"]


def test_a_daemon_set_has_every_node_keep_the_sidecar_s_image_and_does_nothing() -> None:
    daemon = render(VALUE_SETS["an image that is there first"]).one("DaemonSet", "fleetprof-prepull")
    spec = daemon["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    variables = environment_of_the_webhook("an image that is there first")
    assert container["image"] == variables["FLEETPROF_SIDECAR_IMAGE"]
    assert variables["FLEETPROF_REQUIRE_IMAGE"] == "true"
    assert container["command"] == ["sleep", "infinity"]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["automountServiceAccountToken"] is False


def environment_of_the_webhook(name: str) -> dict[str, str]:
    deployment = render(VALUE_SETS[name]).one("Deployment", "fleetprof-webhook")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {item["name"]: item["value"] for item in container["env"]}


def test_a_spread_with_a_selector_of_its_own_keeps_it() -> None:
    own = "pods.topologySpreadConstraints[0].labelSelector.matchLabels.team=ml"
    pods = dict(render((*OIDC, *(f"pods.{value}" for value in PLACES), own)).pods())
    (spread,) = pods["fleetprof-webhook"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": {"team": "ml"}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("operator.extraEnv[0].name=FLEETPROF_STORE", "extraEnv"),
        ("pods.topologySpreadConstraints[0].maxSkew=1", "topologyKey"),
        ("operator.extraVolumeMounts[0].name=corporate", "mountPath"),
        (r"commonLabels.fleetprof\.io/inject=true", "commonLabels"),
        (r"commonLabels.app\.kubernetes\.io/name=ours", "invalid propertyName"),
        ("analyzer.deadlineSeconds=0", "deadlineSeconds"),
    ],
)
def test_what_would_take_something_of_ours_away_is_refused(value: str, words: str) -> None:
    with pytest.raises(ValuesRefused, match=words):
        render((*OIDC, value))


def test_common_labels_are_on_every_object_and_pod_and_select_nothing() -> None:
    objects = render(VALUE_SETS["a site's own"])
    for item in objects.items:
        assert item["metadata"]["labels"]["cost-centre"] == "ml", (item["kind"], item["metadata"]["name"])
        selector = item.get("spec", {}).get("selector", {})
        assert "cost-centre" not in str(selector), item["metadata"]["name"]
    for owner, template in objects.pods():
        assert template["metadata"]["labels"]["cost-centre"] == "ml", owner


def test_who_reads_or_signs_for_a_private_store_has_its_authority() -> None:
    authorities = {
        "fleetprof-operator": {"AWS_CA_BUNDLE", "FLEETPROF_STORE_AUTHORITY"},
        "fleetprof-webui": {"AWS_CA_BUNDLE"},
        "analyzer Jobs": {"SSL_CERT_FILE"},
    }
    values = (*VALUE_SETS["a private store"], *OIDC[2:])
    found = {}
    for owner, template in render(values).pods():
        (container,) = template["spec"]["containers"]
        names = {item["name"] for item in container["env"] if item.get("value") == "/etc/fleetprof/store/ca.crt"}
        if names:
            found[owner] = names
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
            source = volumes[mounts["/etc/fleetprof/store"]]["configMap"]
            assert source == {"name": "corporate-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}, owner
    assert found == authorities


def test_a_change_of_the_analyzer_s_pod_restarts_the_operator_that_reads_it() -> None:
    def annotation(*values: str) -> str:
        deployment = render((*VALUE_SETS["S3"], *values)).one("Deployment", "fleetprof-operator")
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["checksum/analyzer"])

    assert annotation() == annotation()
    assert annotation() != annotation("analyzer.resources.limits.memory=8Gi")


@pytest.mark.parametrize(
    ("values", "images"),
    [
        ((), {"ghcr.io/fleetprof/operator:0.1.0", "ghcr.io/fleetprof/analyzer:0.1.0"}),
        (
            ("image.tag=dev", "image.registry=mirror.example/f"),
            {"mirror.example/f/operator:dev", "mirror.example/f/analyzer:dev"},
        ),
        (
            (f"image.digests.operator=sha256:{'1' * 64}", "image.tag=dev"),
            {f"ghcr.io/fleetprof/operator@sha256:{'1' * 64}", "ghcr.io/fleetprof/analyzer:dev"},
        ),
    ],
)
def test_images_are_named_by_registry_and_tag_or_digest(values: tuple[str, ...], images: set[str]) -> None:
    rendered = render((*VALUE_SETS["S3"], *values)).pods()
    assert {container["image"] for _, template in rendered for container in template["spec"]["containers"]} == images
