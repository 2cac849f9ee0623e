"""Each value of the chart that shapes the analyzer's pod, tried at a real API server against the chart's own policy."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from fleetprof_api.request import Analysis
from fleetprof_operator.analyses.analyzer_job import build_job
from harness.kubernetes.api_server import ApiServer, run_api_server, since
from harness.kubernetes.chart import NAMESPACE, VALUE_SETS, Objects, render
from harness.kubernetes.stolen_identities import BINDINGS, JOBS, POLICIES, must
from harness.waiting import wait_until

pytestmark = [pytest.mark.cluster, since(30)]

S3 = VALUE_SETS["S3"]
CASES: dict[str, tuple[str, ...]] = {
    name.replace(" ", "-"): VALUE_SETS[name]
    for name in ("S3", "a private store", "bundled store", "cert-manager", "accounts of others", "placed", "pinned")
} | {
    "resources": (*S3, "analyzer.resources.limits.memory=8Gi", "analyzer.deadlineSeconds=900"),
    "variables": (
        *S3,
        "analyzer.extraEnv[0].name=KEY",
        "analyzer.extraEnv[0].valueFrom.secretKeyRef.name=proxy",
        "analyzer.extraEnv[0].valueFrom.secretKeyRef.key=key",
        "analyzer.extraEnv[1].name=NODE",
        "analyzer.extraEnv[1].valueFrom.fieldRef.fieldPath=spec.nodeName",
    ),
}
OWNERS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def release(case: str) -> Objects:
    return render((*CASES[case], f"fullnameOverride={case.lower()}"))


def account(case: str) -> str:
    deployment = release(case).one("Deployment", f"{case.lower()}-operator")
    return f"{NAMESPACE}:{deployment['spec']['template']['spec']['serviceAccountName']}"


def make(case: str, analysis: Analysis | None = None) -> dict[str, Any]:
    template = copy.deepcopy(release(case).analyzer_pod())
    return build_job(template, "report", namespace="team", uid="u", name="r", analysis=analysis, deadline_s=60)


def create(server: ApiServer, case: str, job: dict[str, Any]) -> tuple[int, str]:
    status, answer = server.call("POST", f"{JOBS}?dryRun=All", job, account=account(case))
    return status, str(answer.get("message", ""))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The policies of all releases, each of which is about its own operator; their accounts may make any Job."""
    with run_api_server(tmp_path_factory.mktemp("api-server")) as server:
        must(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        group = {"kind": "Group", "name": "system:serviceaccounts", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
        must(server, "POST", OWNERS, {"metadata": {"name": "all"}, "roleRef": role, "subjects": [group]})
        for case in CASES:
            objects, name = release(case), f"{case.lower()}-analyses"
            must(server, "POST", POLICIES, objects.one("ValidatingAdmissionPolicy", name))
            must(server, "POST", BINDINGS, objects.one("ValidatingAdmissionPolicyBinding", name))
        yield server


@pytest.mark.parametrize("case", CASES)
def test_the_policy_takes_the_job_of_the_chart_s_own_template_and_no_other_volume(case: str, server: ApiServer) -> None:
    stolen = make(case)
    volumes = stolen["spec"]["template"]["spec"]["volumes"]
    volumes[0] = {"name": volumes[0]["name"], "secret": {"secretName": "of-the-webhook"}}
    wait_until(lambda: create(server, case, stolen)[0] != 201, "the policy to be heeded")
    assert "mount nothing that the chart's template does not" in create(server, case, stolen)[1]
    taken = make(case)
    source = {"secretKeyRef": {"name": "of-the-webhook", "key": "tls.key"}}
    taken["spec"]["template"]["spec"]["containers"][0]["env"][0] = {"name": "KEY", "valueFrom": source}
    assert "take nothing into their environment" in create(server, case, taken)[1]
    analysis = Analysis.model_validate({"resources": {"requests": {"memory": "2Gi"}}, "parallelism": 2})
    for job in (make(case), make(case, analysis)):
        assert create(server, case, job) == (201, "")
