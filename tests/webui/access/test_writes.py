"""Captures asked for in the person's own name: the API server decides, and sees who it is."""

import json
from collections.abc import Callable

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_webui.kubernetes_api import KubernetesApi, requests_path
from harness.kubernetes.api_server import ApiServer

from .conftest import SYSTEM, WRITE, Browser, grant

pytestmark = pytest.mark.cluster
YAML = """
apiVersion: fleetprof.io/v1alpha1
kind: ProfileRequest
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  target: {workload: {apiVersion: batch/v1, kind: Job, name: llama}}
  window: {iterations: 5}
"""


@pytest.fixture(scope="module")
def impersonator(cluster: ApiServer) -> None:
    """The service's account may impersonate the people and groups of these tests."""
    rule = {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]}
    account = {"kind": "ServiceAccount", "name": "webui", "namespace": SYSTEM}
    grant(cluster, "webui-impersonates", [rule], account)


def yaml_of(name: str, namespace: str) -> dict[str, str]:
    return {"yaml": YAML.replace("NAMESPACE", namespace).replace("NAME", name)}


@pytest.mark.parametrize("writes", ["token", "impersonate"])
def test_a_capture_is_asked_for_by_who_may(
    make_browser: Callable[..., Browser], cluster: ApiServer, impersonator: None, writes: str
) -> None:
    browser = make_browser(f"--writes={writes}")
    browser.sign_in()
    assert browser.client.get("/whoami").json()["may_capture"] is True
    answer = browser.client.post("/requests", json=yaml_of(f"by-{writes}", "team-a"), headers=WRITE)
    assert answer.status_code == 200, answer.text
    status, made = cluster.call("GET", requests_path("team-a", f"by-{writes}"))
    assert (status, made["metadata"]["uid"]) == (200, answer.json()["uid"])


@pytest.mark.attack
@pytest.mark.parametrize("writes", ["token", "impersonate"])
def test_who_may_not_ask_for_one_is_refused_by_the_api_server(
    make_browser: Callable[..., Browser], cluster: ApiServer, impersonator: None, writes: str
) -> None:
    browser = make_browser(f"--writes={writes}")
    browser.sign_in()
    refused = browser.client.post("/requests", json=yaml_of("not-mine", "team-b"), headers=WRITE)
    assert refused.status_code == 409
    assert f'User "{browser.provider.issuer}#ann" cannot create' in refused.json()["detail"]
    assert cluster.call("GET", requests_path("team-b", "not-mine"))[0] == 404


@pytest.mark.parametrize(
    ("writes", "namespace", "status", "words"),
    [
        ("token", "team-a", 200, "the API server would create it in team-a"),
        ("impersonate", "team-a", 200, "the API server would create it in team-a"),
        ("token", "team-b", 409, "cannot create"),
        ("none", "team-b", 200, "decided when it is asked for"),  # nobody is asked
    ],
)
def test_a_check_is_the_api_server_s_dry_run_and_makes_nothing(
    make_browser: Callable[..., Browser],
    cluster: ApiServer,
    impersonator: None,
    writes: str,
    namespace: str,
    status: int,
    words: str,
) -> None:
    browser = make_browser(f"--writes={writes}")
    browser.sign_in()
    checked = browser.client.post("/requests/check", json=yaml_of("checked", namespace), headers=WRITE)
    assert (checked.status_code, words in checked.text) == (status, True), checked.text
    if status == 200:
        assert checked.json()["checked_by"] == ("this service" if writes == "none" else "API server")
    assert cluster.call("GET", requests_path(namespace, "checked"))[0] == 404


def test_a_check_names_every_field_that_is_wrong(browser: Browser) -> None:
    browser.sign_in()
    wrong = yaml_of("a", "team-a")["yaml"].replace("iterations: 5", "iterations: -5").replace("kind: Job, ", "")
    checked = browser.client.post("/requests/check", json={"yaml": wrong}, headers=WRITE)
    assert checked.status_code == 422
    assert [field.split(":")[0] for field in checked.json()["fields"]] == [
        "spec.target.workload.kind",
        "spec.window.iterations",
    ]


@pytest.mark.attack
def test_without_the_switch_nothing_is_written(browser: Browser) -> None:
    browser.sign_in()
    refused = browser.client.post("/requests", json=yaml_of("any", "team-a"), headers=WRITE)
    assert refused.status_code == 403
    assert "kubectl" in refused.json()["next_step"]


@pytest.mark.attack
def test_a_foreign_page_asks_for_no_capture(make_browser: Callable[..., Browser]) -> None:
    browser = make_browser("--writes=token")
    browser.sign_in()
    for headers in ({"Origin": "https://evil.example.com", "X-Fleetprof-Request": "1"}, {"Origin": WRITE["Origin"]}):
        assert browser.client.post("/requests", json=yaml_of("any", "team-a"), headers=headers).status_code == 403


def test_what_the_api_server_finds_wrong_is_said_and_nothing_made(
    make_browser: Callable[..., Browser], cluster: ApiServer
) -> None:
    browser = make_browser("--writes=token")
    browser.sign_in()
    body = yaml_of("twice", "team-a")
    assert browser.client.post("/requests", json=body, headers=WRITE).status_code == 200
    again = browser.client.post("/requests", json=body, headers=WRITE)
    assert again.status_code == 409
    assert "already exists" in again.json()["detail"]
    wrong = {"yaml": body["yaml"].replace("iterations: 5", "iterations: -5")}
    assert browser.client.post("/requests", json=wrong, headers=WRITE).json()["fields"]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("system:admin", ()),
        ("ann", ("team-a", "system:masters")),
        ("", ()),
        ("ann\r\nImpersonate-Group: system:masters", ()),
    ],
    ids=str,
)
async def test_nobody_of_the_system_is_impersonated(
    flags: list[str], connect: Callable[[], KubernetesApi], impersonator: None, user: str, groups: tuple[str, ...]
) -> None:
    api = connect()
    try:
        with pytest.raises(ApiRefused, match="impersonates no such"):
            await api.call_as_person(user, groups, "POST", requests_path("team-a"), {})
    finally:
        await api.close()


@pytest.mark.parametrize("writes", ["none", "token", "impersonate"])
def test_who_am_i_is_the_api_server_s_word(
    make_browser: Callable[..., Browser], impersonator: None, writes: str
) -> None:
    browser = make_browser(f"--writes={writes}")
    browser.sign_in()
    me = browser.client.get("/whoami").json()
    assert (me["name"], me["source"], me["problem"]) == (f"{browser.provider.issuer}#ann", "API server", "")
    assert {"oidc:team-a", "system:authenticated"} <= set(me["groups"])


def test_a_prefix_that_is_not_the_api_server_s_is_named(make_browser: Callable[..., Browser]) -> None:
    browser = make_browser("--writes=token", "--username-prefix=other:")
    browser.sign_in()
    assert "this service calls you other:ann" in browser.client.get("/whoami").json()["problem"]


def test_the_cancel_of_an_unknown_name_is_refused_by_the_api_server(make_browser: Callable[..., Browser]) -> None:
    browser = make_browser("--writes=token")
    browser.sign_in()
    refused = browser.client.post("/requests/team-a/uid-team-a/cancel", headers=WRITE)
    assert refused.status_code == 409
    assert "not found" in json.dumps(refused.json())
