"""A release at a real API server and a real helm: accepted as it is, upgraded and removed without loss."""

import base64
import copy
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleetprof_api import pods
from fleetprof_operator.analyses.analyzer_job import build_job
from harness.kubernetes import chart
from harness.kubernetes.api_server import ApiServer, run_api_server
from harness.kubernetes.chart import CHART, VALUE_SETS
from harness.kubernetes.foreign_kinds import install_kinds
from harness.kubernetes.objections import Objections

pytestmark = pytest.mark.cluster

# Kinds of cert-manager and of the Prometheus operator, as those projects publish them.
FOREIGN = ("Issuer", "Certificate", "PrometheusRule", "ServiceMonitor")
BUNDLED = VALUE_SETS["bundled store"]
UNCHECKED = ("--disable-openapi-validation",)

Helm = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with run_api_server(tmp_path_factory.mktemp("api-server")) as server:
        for namespace in (chart.NAMESPACE, "team-a", "team-b"):
            server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        install_kinds(server, *FOREIGN)
        yield server


@pytest.fixture(scope="module")
def objections(server: ApiServer) -> Objections:
    return Objections(server)


@pytest.fixture
def helm(server: ApiServer, tmp_path: Path) -> Helm:
    """Runs helm on that server, without hooks: nothing runs pods there.

    It does not fetch the schemas of all kinds to check objects with them: the server does, strictly in a test of all of
    them.
    """
    binary = chart.find_helm()
    assert binary is not None

    def run(*words: str) -> str:
        environment = os.environ | {"KUBECONFIG": str(server.kubeconfig()), "HOME": str(tmp_path)}
        flags = UNCHECKED if words[0] in ("install", "upgrade") else ()
        result = subprocess.run(
            [binary, "--namespace", chart.NAMESPACE, *words, *flags],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


@pytest.fixture
def release(helm: Helm) -> Iterator[Helm]:
    """A release with the bundled store, gone afterwards."""
    helm("install", "fleetprof", str(CHART), *settings(BUNDLED))
    yield helm
    if "fleetprof" in helm("list", "--short"):
        helm("uninstall", "fleetprof", "--no-hooks")


def settings(values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in ("--set", value)]


def path_of(kind: str, name: str) -> str:
    return f"/api/v1/namespaces/{chart.NAMESPACE}/{kind}/{name}"


CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fleetprof"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/profilerequests.fleetprof.io"


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_api_server_takes_every_object_and_knows_every_field(name: str, objections: Objections) -> None:
    for item in chart.render(VALUE_SETS[name]).items:
        namespace = item["metadata"].get("namespace", chart.NAMESPACE)  # helm's own way of placing them
        placed = item | {"metadata": item["metadata"] | {"namespace": namespace}}
        # Neither a refusal nor a warning: nothing deprecated, nothing that Pod Security would refuse.
        assert objections.to(placed) == [], (item["kind"], item["metadata"]["name"])


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_field_that_another_project_s_kind_does_not_have_is_refused(kind: str, objections: Objections) -> None:
    rendered = (*VALUE_SETS["cert-manager"], "serviceMonitor.enabled=true", "rules.enabled=true")
    item = copy.deepcopy(next(iter(chart.render(rendered).of_kind(kind).values())))
    item["metadata"]["namespace"] = chart.NAMESPACE
    item["spec"]["misspelt"] = "x"
    (objection,) = objections.to(item)
    assert ".spec.misspelt: field not declared in schema" in objection


def test_the_example_job_passes_under_restricted(server: ApiServer) -> None:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "examples", "labels": labels}})
    job = CHART.parents[1] / "examples/kubernetes/job.yaml"
    result = server.kubectl("apply", "--dry-run=server", "--validate=strict", "-n", "examples", "-f", str(job))
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("scope", ["S3", "bundled store", "namespaced"])
def test_the_notes_name_what_the_release_has_and_the_next_commands(scope: str, helm: Helm) -> None:
    objects = chart.render(VALUE_SETS[scope])
    text = helm("install", "fleetprof", str(CHART), *settings(VALUE_SETS[scope]), "--dry-run=server")
    notes = text.partition("NOTES:")[2]
    # The operator is not ready before the bundled store is.
    assert set(re.findall(r"deploy/(\S+)", notes)) == set(objects.of_kind("Deployment")) - {"fleetprof-store"}
    assert ("kubectl label namespace" in notes, "fleetprof inject" in notes) == (
        scope != "namespaced",
        scope == "namespaced",
    )
    assert "kubectl fleetprof capture job/NAME -n NAMESPACE --iterations 5\n" in notes
    report = "kubectl fleetprof report -n NAMESPACE"
    assert re.findall(rf"^ +({report}.*)$", notes, re.MULTILINE) == [
        f"{report} --port-forward" if scope == "bundled store" else report
    ]
    assert f"{'role' if scope == 'namespaced' else 'clusterrole'}=fleetprof-editor" in notes


def test_an_upgrade_takes_nothing_away_that_was_filled_in_since(release: Helm, server: ApiServer) -> None:
    _, before = server.call("GET", path_of("secrets", "fleetprof-store"))
    authority = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
    server.call("PATCH", path_of("secrets", "fleetprof-tls"), {"data": {"ca.crt": authority}})
    _, configuration = server.call("GET", CONFIGURATION)
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"]["caBundle"] = authority
    status, answer = server.call("PATCH", CONFIGURATION, {"webhooks": configuration["webhooks"]})
    assert status == 200, answer
    release("upgrade", "fleetprof", str(CHART), *settings((*BUNDLED, "pods.logLevel=debug")))
    _, after = server.call("GET", path_of("secrets", "fleetprof-store"))
    assert after["data"] == before["data"]
    _, certificates = server.call("GET", path_of("secrets", "fleetprof-tls"))
    assert certificates["data"] == {"ca.crt": authority}
    _, configuration = server.call("GET", CONFIGURATION)
    assert {webhook["clientConfig"].get("caBundle") for webhook in configuration["webhooks"]} == {authority}


def test_an_uninstall_leaves_requests_and_traces_and_nothing_else(release: Helm, server: ApiServer) -> None:
    _, before = server.call("GET", path_of("secrets", "fleetprof-store"))
    authority = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
    server.call("PATCH", path_of("secrets", "fleetprof-tls"), {"data": {"ca.crt": authority}})
    release("uninstall", "fleetprof", "--no-hooks")
    listed = server.kubectl(
        "get",
        "all,secrets,configmaps,pvc,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,"
        "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,crd",
        "--namespace",
        chart.NAMESPACE,
        "--selector=app.kubernetes.io/name=fleetprof",
        "--output=name",
    )
    assert sorted(listed.stdout.split()) == [
        "customresourcedefinition.apiextensions.k8s.io/profilepolicies.fleetprof.io",
        "customresourcedefinition.apiextensions.k8s.io/profilerequests.fleetprof.io",
        "persistentvolumeclaim/fleetprof-store",
        "secret/fleetprof-store",
        "secret/fleetprof-store-reader",
        "secret/fleetprof-tls",
    ]
    release("install", "fleetprof", str(CHART), *settings(BUNDLED))  # finds them again
    _, after = server.call("GET", path_of("secrets", "fleetprof-store"))
    assert after["data"] == before["data"]
    _, certificates = server.call("GET", path_of("secrets", "fleetprof-tls"))
    assert certificates["data"] == {"ca.crt": authority}


def test_a_second_release_for_what_is_served_is_refused_by_name_and_one_beside_it_is_not(
    release: Helm, tmp_path: Path, server: ApiServer
) -> None:
    del release

    def install(name: str, namespace: str, *values: str) -> str:
        chosen = settings((*BUNDLED, *values))
        words = ("install", name, str(CHART), "--namespace", namespace, *chosen, *UNCHECKED)
        environment = os.environ | {"KUBECONFIG": str(server.kubeconfig()), "HOME": str(tmp_path)}
        binary = chart.find_helm()
        assert binary is not None
        return subprocess.run([binary, *words], env=environment, capture_output=True, text=True, timeout=120).stderr

    narrow = ("scope.cluster=false", "crds.enabled=false", "webhook.enabled=false")
    refusal = install("other", "team-a", "crds.enabled=false", "fullnameOverride=other")
    assert f"this cluster is served by the release {chart.NAMESPACE}/fleetprof already" in refusal
    try:
        assert install("narrow", "team-a", *narrow) == ""
        refusal = install("narrow", "team-b", *narrow, "scope.namespaces={team-a}")
        assert "the namespace team-a is served by the release team-a/narrow already" in refusal
        _, lease = server.call("GET", "/apis/coordination.k8s.io/v1/namespaces/team-a/leases/fleetprof")
        assert lease["metadata"]["annotations"]["meta.helm.sh/release-name"] == "narrow"
    finally:
        binary = chart.find_helm()
        environment = os.environ | {"KUBECONFIG": str(server.kubeconfig()), "HOME": str(tmp_path)}
        words = ("uninstall", "narrow", "--namespace", "team-a", "--no-hooks", "--ignore-not-found")
        subprocess.run([str(binary), *words], env=environment, timeout=120, check=True)


def test_the_crd_is_upgraded_with_the_release(helm: Helm, server: ApiServer, tmp_path: Path) -> None:
    older = tmp_path / "fleetprof"
    shutil.copytree(CHART, older)
    template = older / "templates/crds/profilerequests.yaml"
    template.write_text(template.read_text().replace("shortNames: [profreq]", "shortNames: [older]"))
    helm("install", "fleetprof", str(older), *settings(BUNDLED))
    _, before = server.call("GET", CRD)
    helm("upgrade", "fleetprof", str(CHART), *settings(BUNDLED))
    _, after = server.call("GET", CRD)
    helm("uninstall", "fleetprof", "--no-hooks")
    names = [document["spec"]["names"]["shortNames"] for document in (before, after)]
    assert names == [["older"], ["profreq"]]


# ---------------------------------------------------------------- the webhook, while no replica of it answers

REQUESTS = f"/apis/fleetprof.io/v1alpha1/namespaces/{chart.NAMESPACE}/profilerequests"


def request(name: str) -> dict[str, Any]:
    spec = {"target": {"selector": {"matchLabels": {"a": "b"}}}, "window": {"iterations": 1}}
    return {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"name": name, "annotations": {}},
        "spec": spec,
    }


@pytest.fixture
def without_replicas(helm: Helm, server: ApiServer) -> Iterator[str]:
    """A release whose webhook nobody serves, and a request that was made before it came; its path."""
    helm("install", "fleetprof", str(CHART), *settings((*BUNDLED, "webhook.enabled=false")))
    status, answer = server.call("POST", REQUESTS, request("before"))
    assert status == 201, answer
    helm("upgrade", "fleetprof", str(CHART), *settings(BUNDLED))
    yield f"{REQUESTS}/before"
    helm("uninstall", "fleetprof", "--no-hooks")
    server.call("DELETE", f"{REQUESTS}/before")


def test_a_request_that_nobody_signs_is_refused_and_one_that_is_there_can_be_freed(
    without_replicas: str, server: ApiServer
) -> None:
    status, answer = server.call("POST", REQUESTS, request("after"))
    assert status == 500
    assert 'failed calling webhook "requester.fleetprof.io"' in answer["message"]
    forged = {"metadata": {"annotations": {pods.REQUESTED_BY_ANNOTATION: "somebody"}}}
    assert server.call("PATCH", without_replicas, forged)[0] == 500
    for change in ({"finalizers": ["fleetprof.io/capture"]}, {"finalizers": None}, {"annotations": {"a": "b"}}):
        status, answer = server.call("PATCH", without_replicas, {"metadata": change})
        assert status == 200, answer


@pytest.mark.usefixtures("without_replicas")
def test_a_pod_starts_although_no_webhook_answers(server: ApiServer) -> None:
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "labelled", "labels": {pods.INJECT_LABEL: "true"}}})
    server.call("POST", "/api/v1/namespaces/labelled/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"metadata": {"name": "trainer"}, "spec": {"containers": [{"name": "trainer", "image": "trainer"}]}}
    status, answer = server.call("POST", "/api/v1/namespaces/labelled/pods", pod)
    assert status == 201, answer
    assert [container["name"] for container in answer["spec"]["containers"]] == ["trainer"]


@pytest.mark.attack
def test_the_quota_of_analyses_counts_their_pods_and_nothing_else(server: ApiServer, release: Helm) -> None:
    """No controller counts here: the test says how much is used."""
    del release
    root = f"/api/v1/namespaces/{chart.NAMESPACE}"
    server.call("POST", f"{root}/serviceaccounts", {"metadata": {"name": "default"}})
    _, quota = server.call("GET", f"{root}/resourcequotas/fleetprof-analyzer")
    assert quota["spec"] == {"scopes": ["Terminating"], "hard": {
        "pods": "64", "requests.cpu": "64", "requests.memory": "256Gi", "limits.memory": "512Gi"}}  # fmt: skip
    used = {"pods": "64", "requests.cpu": "1", "requests.memory": "1Gi", "limits.memory": "1Gi"}
    full = {"status": {"hard": quota["spec"]["hard"], "used": used}}
    assert server.call("PATCH", f"{root}/resourcequotas/fleetprof-analyzer/status", full)[0] == 200
    (analysis,) = [
        yaml.safe_load(text) for text in server.call("GET", f"{root}/configmaps/fleetprof-analyzer")[1]["data"].values()
    ]
    job = build_job(analysis, "report", namespace="a", uid="u", name="n", analysis=None, deadline_s=600)
    of_analysis = job["spec"]["template"]["spec"]
    lasting = {key: value for key, value in of_analysis.items() if key != "activeDeadlineSeconds"}
    for name, spec, status in (("analysis", of_analysis, 403), ("operator", lasting, 201)):
        answer, refusal = server.call("POST", f"{root}/pods", {"metadata": {"name": name}, "spec": spec})
        assert answer == status, refusal
    assert (
        "exceeded quota: fleetprof-analyzer"
        in server.call("POST", f"{root}/pods", {"metadata": {"name": "analysis"}, "spec": of_analysis})[1]["message"]
    )
    server.call("DELETE", f"{root}/pods/operator", {"gracePeriodSeconds": 0})
