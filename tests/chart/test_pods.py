"""Every pod that the chart makes, with every set of values: restricted, bounded, and holding no more than it needs."""

import pytest
from chart import VALUE_SETS, render

pytestmark = pytest.mark.cluster

CASES = [pytest.param(values, id=name) for name, values in VALUE_SETS.items()]


@pytest.mark.parametrize("values", CASES)
def test_every_container_is_restricted_and_bounded(values) -> None:
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
            assert volume.keys() - {"name"} <= {"emptyDir", "secret", "configMap", "persistentVolumeClaim"}, owner


@pytest.mark.parametrize("values", CASES)
def test_what_runs_on_and_on_is_probed(values) -> None:
    for name, deployment in render(values).of_kind("Deployment").items():
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            assert {"livenessProbe", "readinessProbe"} <= container.keys(), name
            ports = {port["name"] for port in container["ports"]}
            for probe in ("livenessProbe", "readinessProbe"):
                assert container[probe]["httpGet"]["port"] in ports, name


@pytest.mark.parametrize("values", CASES)
def test_every_volume_is_mounted_and_every_mount_has_its_volume(values) -> None:
    for owner, template in render(values).pods():
        spec = template["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        mounted = {mount["name"] for container in containers for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in spec.get("volumes", [])}, owner


def test_only_who_speaks_to_the_api_server_holds_a_token() -> None:
    holds = {
        owner: template["spec"]["automountServiceAccountToken"]
        for owner, template in render(VALUE_SETS["bundled store"]).pods()
    }
    assert holds == {
        "fleetprof-operator": True,
        "fleetprof-webhook": True,
        "fleetprof-release": True,
        "fleetprof-store": False,
        "analyzer Jobs": False,
    }


@pytest.mark.parametrize("values", CASES)
def test_only_the_store_s_own_users_hold_its_credentials(values) -> None:
    for owner, template in render(values).pods():
        if owner.endswith(("-webhook", "-release")):
            names = {item["name"] for container in template["spec"]["containers"] for item in container["env"]}
            assert not any(name.startswith("AWS_") for name in names), owner
            assert "FLEETPROF_STORE" not in names, owner


def test_no_one_but_the_operator_ever_sees_the_authority_s_key() -> None:
    for name in ("S3", "cert-manager"):
        for owner, template in render(VALUE_SETS[name]).pods():
            for volume in template["spec"].get("volumes", []):
                if "secret" in volume:
                    keys = {item["key"] for item in volume["secret"]["items"]}
                    assert keys == {"ca.crt", "tls.crt", "tls.key"}, owner


def test_one_operator_at_a_time_and_two_webhooks_on_two_nodes() -> None:
    objects = render()
    operator = objects.one("Deployment", "fleetprof-operator")["spec"]
    assert (operator["replicas"], operator["strategy"]) == (1, {"type": "Recreate"})
    webhook = objects.one("Deployment", "fleetprof-webhook")["spec"]
    assert webhook["replicas"] == 2
    assert webhook["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (spread,) = webhook["template"]["spec"]["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    assert spread["labelSelector"]["matchLabels"] == webhook["selector"]["matchLabels"]


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


def test_a_change_of_the_analyzer_s_pod_restarts_the_operator_that_reads_it() -> None:
    def annotation(*values: str) -> str:
        deployment = render((*VALUE_SETS["S3"], *values)).one("Deployment", "fleetprof-operator")
        return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/analyzer"]

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
def test_images_are_named_by_registry_and_tag_or_digest(values, images) -> None:
    rendered = render((*VALUE_SETS["S3"], *values)).pods()
    assert {container["image"] for _, template in rendered for container in template["spec"]["containers"]} == images
