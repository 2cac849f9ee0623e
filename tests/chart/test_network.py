"""Network policies: what each component may reach and be reached from."""

from typing import Any

import pytest
from harness.kubernetes.chart import S3, VALUE_SETS, Objects, render

pytestmark = pytest.mark.helm


def reach(objects: Objects, component: str) -> set[tuple[int, str]]:
    """(port, to whom) of a component's egress."""
    policy = objects.one("NetworkPolicy", f"fleetprof-{component}")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    whom = set()
    for rule in policy["egress"]:
        for peer in rule.get("to", [None]):
            to = "anywhere" if peer is None else peer.get("ipBlock", {}).get("cidr")
            to = to or peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
            whom |= {(port["port"], to) for port in rule["ports"]}
    return whom


NAMES = (53, "anywhere")
API = {(443, "anywhere"), (6443, "anywhere")}
OPERATOR = (8443, "operator")


@pytest.mark.attack
@pytest.mark.parametrize(
    ("name", "component", "expected"),
    [
        ("S3", "operator", {NAMES, *API}),
        ("S3", "webhook", {NAMES, *API}),
        ("S3", "release", {NAMES, *API}),
        ("S3", "test", {NAMES, *API}),
        ("S3", "certificates", {NAMES, *API}),
        ("S3", "analyzer", {NAMES, OPERATOR, (443, "anywhere")}),
        ("MinIO", "operator", {NAMES, *API, (9000, "anywhere")}),
        ("MinIO", "analyzer", {NAMES, OPERATOR, (9000, "anywhere")}),
        ("bundled store", "analyzer", {NAMES, OPERATOR, (7070, "store")}),
        ("bundled store", "store", set()),
        ("narrow network", "analyzer", {NAMES, OPERATOR, (443, "10.0.0.0/8")}),
        ("narrow network", "operator", {NAMES, *API, (443, "10.0.0.0/8"), (80, "169.254.170.23/32")}),
        ("narrow network", "webhook", {NAMES, *API}),
        (
            "narrow network and a role",
            "operator",
            {NAMES, (6443, "anywhere"), (443, "10.0.0.0/8"), (443, "anywhere")},
        ),
        ("narrow network and a role", "analyzer", {NAMES, OPERATOR, (443, "10.0.0.0/8")}),
        ("an image that is there first", "prepull", set()),
        ("web UI", "webui", {NAMES, *API, (8443, "anywhere")}),
        ("web UI by port-forward", "webui", {NAMES, *API, (7070, "store"), (8443, "anywhere")}),
        ("web UI by kubectl", "webui", {NAMES, *API, (443, "anywhere")}),
        ("web UI behind a proxy", "webui", {NAMES, *API, (5432, "anywhere"), (6432, "anywhere")}),
    ],
)
def test_each_component_reaches_what_it_needs(name: str, component: str, expected: set[tuple[int, str]]) -> None:
    assert reach(render(VALUE_SETS[name]), component) == expected


def test_replicas_reach_the_one_that_serves() -> None:
    two = (*S3, "operator.replicas=2")
    assert OPERATOR in reach(render(two), "operator")
    reached = reach(render((*two, "operator.alerts.tokenSecret=alertmanager")), "operator")
    assert {OPERATOR, (8444, "operator")} < reached


def test_sidecars_and_browsers_reach_what_is_theirs_from_everywhere_and_nobody_reaches_the_analyzer() -> None:
    objects = render(VALUE_SETS["web UI by port-forward"])

    def open_ports(component: str) -> set[int]:
        rules = objects.one("NetworkPolicy", f"fleetprof-{component}")["spec"]["ingress"]
        return {port["port"] for rule in rules if "from" not in rule for port in rule["ports"]}

    found = {name: open_ports(name) for name in ("operator", "webhook", "store", "webui", "analyzer", "release")}
    assert found == {
        "operator": {8081, 8443},  # figures for the API server, which is no pod, and a token is asked for
        "webhook": {9443},
        "store": {7070, 7071},
        "webui": {8770},
        "analyzer": set(),
        "release": set(),
    }


PROBED: dict[str, set[int]] = {"webui": {8080}}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("name", "whom"),
    [("S3", {}), ("narrow network", {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}})],
)
def test_metrics_are_for_pods_of_the_cluster_or_for_the_scrapers_that_are_named(
    name: str, whom: dict[str, Any]
) -> None:
    objects = render(VALUE_SETS[name])
    for component in ("operator", "webhook"):
        rules = objects.one("NetworkPolicy", f"fleetprof-{component}")["spec"]["ingress"]
        (scraped,) = (rule for rule in rules if rule["ports"] == [{"protocol": "TCP", "port": 8080}])
        assert scraped["from"] == [{"namespaceSelector": whom}]


@pytest.mark.parametrize("name", VALUE_SETS)
def test_services_and_policies_name_ports_that_containers_open(name: str) -> None:
    objects = render(VALUE_SETS[name])
    opened: dict[str, dict[str, int]] = {}
    for _, template in objects.pods():
        ports = [port for container in template["spec"]["containers"] for port in container.get("ports", [])]
        component = template["metadata"]["labels"]["app.kubernetes.io/component"]
        opened[component] = {port["name"]: port["containerPort"] for port in ports}
    for service in objects.of_kind("Service").values():
        component = service["spec"]["selector"]["app.kubernetes.io/component"]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= opened[component].keys()
    for policy in objects.of_kind("NetworkPolicy").values():
        component = policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        allowed = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        # The kubelet's probes pass every policy, and nobody else speaks to who keeps the certificates.
        probed = set(opened[component].values()) if component == "certificates" else PROBED.get(component, set())
        assert allowed == set(opened[component].values()) - probed
