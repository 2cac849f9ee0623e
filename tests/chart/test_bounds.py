"""The bounds of requests: refused on apply by a real API server, and by the operator in the same cases."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml
from fleetprof_api.request import parse_request
from fleetprof_operator.hub.bounds import AllBounds, find_beyond, parse_bounds
from fleetprof_operator.hub.submission import find_unsupported
from harness.kubernetes import chart
from harness.kubernetes.api_server import ApiServer, serve_requests
from harness.kubernetes.chart import NAMESPACED, VALUE_SETS
from harness.waiting import wait_until

pytestmark = pytest.mark.cluster

KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ConfigMap")


def request(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"generateName": "bounded-"},
        "spec": {
            name: value
            for name, value in (
                {"target": {"selector": {"matchLabels": {"a": "b"}}}, "window": {"iterations": 5}} | spec
            ).items()
            if value is not None
        },
    }


def bounds() -> AllBounds:
    objects = chart.render(VALUE_SETS["bounds"])
    return parse_bounds(yaml.safe_load(objects.one("ConfigMap", "fleetprof-bounds")["data"]["bounds.yaml"]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with serve_requests(tmp_path_factory.mktemp("api-server")) as server:
        for namespace in (chart.NAMESPACE, "team-a", "team-b", "team-c"):
            server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        objects = chart.render(VALUE_SETS["bounds"])
        items = [{**item, "metadata": {"namespace": chart.NAMESPACE, **item["metadata"]}} for item in objects.items]
        text = yaml.safe_dump_all([item for item in items if item["kind"] in KINDS])
        result = server.kubectl("apply", "--validate=strict", "-f", "-", text=text)
        assert result.returncode == 0, result.stderr
        for namespace in ("team-a", "team-b", "team-c"):  # a policy is in force some moments after it is stored
            wait_until(partial(refuses_too_much, server, namespace), "the policy")
        yield server


def refuses_too_much(server: ApiServer, namespace: str) -> bool:
    return ask(server, namespace, window={"iterations": 99})[0] == 422


def ask(server: ApiServer, namespace: str, **spec: Any) -> tuple[int, str]:
    path = f"/apis/fleetprof.io/v1alpha1/namespaces/{namespace}/profilerequests?dryRun=All"
    status, answer = server.call("POST", path, request(**spec))
    return status, answer.get("message", "")


ALLOWED = [
    ("team-b", {"window": {"iterations": 10, "warmupIterations": 10}}),
    ("team-b", {"collect": ["Shapes", "ModuleTree"], "limits": {"maxTraceBytes": 1 << 36}}),
    ("team-b", {"ranks": {"sample": 5000}, "window": {"durationMillis": 60_000}}),
    ("team-a", {"window": {"iterations": 50}, "ranks": {"list": list(range(8))}}),
    ("team-a", {"ranks": {"every": 2}}),
    ("team-a", {"redact": [], "storage": {}}),
    ("team-c", {"window": None, "capture": {"stacks": {}}}),
]
REFUSED = [
    ("team-b", {"window": {"iterations": 11}}, "spec.window.iterations", "10"),
    ("team-b", {"window": {"iterations": 1, "warmupIterations": 11}}, "spec.window.warmupIterations", "10"),
    ("team-b", {"collect": ["Shapes", "Stacks"]}, "spec.collect", "Shapes"),
    ("team-b", {"window": None, "capture": {"stacks": {}}}, "spec.capture.stacks", "not allowed"),
    ("team-a", {"window": {"iterations": 51}}, "spec.window.iterations", "50"),
    ("team-a", {"collect": ["Stacks"]}, "spec.collect", "ModuleTree"),
    ("team-a", {"ranks": {"sample": 9}}, "spec.ranks", "8"),
    ("team-a", {"ranks": {"list": list(range(9))}}, "spec.ranks", "8"),
    ("team-a", {"limits": {"maxTraceBytes": 1 << 32}}, "spec.limits.maxTraceBytes", "2147483648"),
]


@pytest.mark.parametrize(("namespace", "spec"), ALLOWED)
def test_what_is_within_the_bounds_is_taken(server: ApiServer, namespace: str, spec: dict[str, Any]) -> None:
    assert ask(server, namespace, **spec) == (201, "")
    assert find_beyond(parse_request(request(**spec)).spec, bounds().of(namespace), "them") == []


@pytest.mark.attack
@pytest.mark.parametrize(("namespace", "spec", "field", "bound"), REFUSED)
def test_what_is_beyond_a_bound_is_refused_on_apply_and_by_the_operator(
    server: ApiServer, namespace: str, spec: dict[str, Any], field: str, bound: str
) -> None:
    status, message = ask(server, namespace, **spec)
    (problem,) = find_beyond(parse_request(request(**spec)).spec, bounds().of(namespace), bounds().contact)
    assert status == 422
    for text in (message, problem):
        assert field in text
        assert bound in text
        assert "ask the platform team" in text


@pytest.mark.parametrize("spec", [{"redact": ["Names"]}, {"storage": {"profile": "eu"}}])
def test_what_this_version_cannot_do_is_refused_on_apply_in_the_operator_s_words(
    server: ApiServer, spec: dict[str, Any]
) -> None:
    status, message = ask(server, "team-b", **spec)
    (problem,) = find_unsupported(parse_request(request(**spec)))
    assert status == 422
    assert problem in message


def test_a_namespaced_release_and_one_without_admission_have_the_operator_alone() -> None:
    for values in (NAMESPACED, VALUE_SETS["no bounds at admission"]):
        objects = chart.render(values)
        assert "fleetprof-bounds" not in objects.of_kind("ValidatingAdmissionPolicy")
        assert "fleetprof-bounds" in objects.of_kind("ConfigMap")
    assert not chart.render(chart.S3, "--kube-version=1.29.0").of_kind("ValidatingAdmissionPolicyBinding")
