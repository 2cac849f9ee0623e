"""People who come by `kubectl fleetprof ui`: a real API server says who their token belongs to."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fleetprof_webui.access.kubectl import KubectlSignIn
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.cluster.settings import read_settings
from fleetprof_webui.cluster.site import make_site
from fleetprof_webui.kubernetes_api import KubernetesApi
from harness.kubernetes.api_server import ApiServer
from harness.memory_store import MemoryStore
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from .conftest import PUBLIC, REQUESTS, grant, make, put_capture
from .test_writes import yaml_of

pytestmark = pytest.mark.cluster

FORWARDED = "http://127.0.0.1:34567"
OWN = {"Origin": FORWARDED, "X-Fleetprof-Request": "1"}
ANN = "system:serviceaccount:team-a:ann"


def bear(token: str) -> dict[str, str]:
    return {**OWN, "Authorization": f"Bearer {token}"}


@dataclass(frozen=True)
class Visitor:
    """A browser at a forwarded port, and the command beside it."""

    client: TestClient

    def bring(self, token: str) -> Any:
        """The command brings a Kubernetes token."""
        return self.client.post("/session/kubectl", headers=bear(token))

    def come(self, token: str) -> None:
        """The command brings a token, and the browser signs in by what it got."""
        begun = self.bring(token)
        assert begun.status_code == 200, begun.text
        opened = self.client.post("/session", json=begun.json(), headers=OWN)
        assert opened.status_code == 204, opened.text

    def sees(self, namespace: str) -> bool:
        return self.client.get(f"/requests/{namespace}/uid-{namespace}").status_code == 200


@pytest.fixture(scope="module")
def ann(cluster: ApiServer) -> Callable[..., str]:
    """Makes tokens of an account that may see and ask for the captures of team-a."""
    make(cluster, "/api/v1/namespaces/team-a/serviceaccounts", {"metadata": {"name": "ann"}})
    account = {"kind": "ServiceAccount", "name": "ann", "namespace": "team-a"}
    verbs = ["get", "list", "create", "patch"]
    grant(cluster, "kubectl-ann", [{**REQUESTS, "verbs": verbs}], account, namespace="team-a")

    def make_token(**spec: Any) -> str:
        path = "/api/v1/namespaces/team-a/serviceaccounts/ann/token"
        return str(make(cluster, path, {"spec": {"expirationSeconds": 3600, **spec}})["status"]["token"])

    return make_token


@pytest.fixture
def visit(flags: list[str], connect: Callable[[], KubernetesApi], tmp_path: Path) -> Iterator[Callable[..., Visitor]]:
    """Somebody at a service that nobody but kubectl leads people to, unless `more` says otherwise."""
    store = MemoryStore()
    for namespace in ("team-a", "team-b"):
        put_capture(store, namespace, f"uid-{namespace}")
    catalog = Catalog(store, open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    catalog.refresh()
    alone = [flag for flag in flags if not flag.startswith(("--oidc", "--public", "--identity", "--groups"))]

    def make_one(*more: str, base_url: str = FORWARDED) -> Visitor:
        settings = read_settings([*alone, "--kubectl-sign-in", *more], {})
        api = connect()
        pages = make_site(settings, store, catalog, api).pages
        client = TestClient(
            pages, base_url=base_url, headers={"Accept": "application/json"}, raise_server_exceptions=False
        )
        opened.enter_context(client)
        assert client.portal is not None
        opened.callback(client.portal.call, api.close)
        return Visitor(client)

    with ExitStack() as opened:
        yield make_one
    catalog.close()


def test_a_token_shows_what_its_person_may_read(visit: Callable[..., Visitor], ann: Callable[..., str]) -> None:
    visitor = visit()
    assert visitor.client.get("/whoami").json()["next_step"] == "run: kubectl fleetprof ui"
    visitor.come(ann())
    who = visitor.client.get("/whoami").json()
    assert (who["name"], who["source"], who["mode"], who["problem"]) == (ANN, "API server", "kubectl", "")
    assert (visitor.sees("team-a"), visitor.sees("team-b")) == (True, False)


@pytest.mark.parametrize("writes", ["token", "impersonate"])
def test_a_capture_is_asked_for_with_that_token(
    visit: Callable[..., Visitor], ann: Callable[..., str], writes: str
) -> None:
    visitor = visit(f"--writes={writes}")
    visitor.come(ann())
    answer = visitor.client.post("/requests", json=yaml_of(f"by-kubectl-{writes}", "team-a"), headers=OWN)
    assert answer.status_code == 200, answer.text
    refused = visitor.client.post("/requests/check", json=yaml_of("not-mine", "team-b"), headers=OWN)
    assert "you may not create" in refused.text or "cannot create" in refused.text


@pytest.mark.attack
def test_a_token_that_the_api_server_does_not_know_opens_nothing(
    visit: Callable[..., Visitor], ann: Callable[..., str]
) -> None:
    visitor = visit()
    claims = base64.urlsafe_b64encode(json.dumps({"sub": ANN, "exp": 2_000_000_000}).encode()).decode().rstrip("=")
    for token in ("", "x", f"e30.{claims}.x", ann(audiences=["elsewhere"]), "a" * 20_000):
        assert visitor.bring(token).status_code == 401, token[:40]
    for token in ("", "x"):
        assert visitor.client.post("/session", json={"token": token}, headers=OWN).status_code == 401
    # The token alone, without a session, is read nowhere else.
    assert visitor.client.get("/requests/team-a/uid-team-a", headers=bear(ann())).status_code == 401


@pytest.mark.attack
def test_what_the_browser_was_given_is_worth_one_session_and_is_not_the_token(
    visit: Callable[..., Visitor], ann: Callable[..., str]
) -> None:
    visitor, token = visit(), ann()
    begun = visitor.bring(token)
    assert token not in begun.text
    assert visitor.client.post("/session", json=begun.json(), headers=OWN).status_code == 204
    assert visitor.client.post("/session", json=begun.json(), headers=OWN).status_code == 401
    assert token not in str(visitor.client.cookies.jar)
    assert visitor.client.get("/whoami").status_code == 200


def test_when_the_command_ends_its_sessions_end_and_no_others(
    visit: Callable[..., Visitor], ann: Callable[..., str]
) -> None:
    visitor, first = visit(), ann()
    visitor.come(first)
    kept = dict(visitor.client.cookies)
    waiting = visitor.bring(first).json()
    visitor.come(ann(expirationSeconds=7200))
    assert visitor.client.delete("/session/kubectl", headers=bear(first)).status_code == 204
    assert visitor.client.get("/whoami").status_code == 200
    assert visitor.client.post("/session", json=waiting, headers=OWN).status_code == 401
    visitor.client.cookies.clear()
    visitor.client.cookies.update(kept)
    assert visitor.client.get("/whoami").status_code == 401


def test_a_person_may_sign_out(visit: Callable[..., Visitor], ann: Callable[..., str]) -> None:
    visitor = visit()
    visitor.come(ann())
    assert visitor.client.delete("/session", headers=OWN).status_code == 200
    assert visitor.client.get("/whoami").status_code == 401


@pytest.mark.attack
@pytest.mark.parametrize("host", ["rebound.example:34567", "127.0.0.1.example:34567", "127.0.0.1", "localhost:34567"])
def test_a_page_that_rebinds_its_name_to_the_forwarded_port_is_refused(
    visit: Callable[..., Visitor], ann: Callable[..., str], host: str
) -> None:
    visitor = visit()
    assert visitor.client.get("/whoami", headers={"Host": host}).status_code == 400
    foreign = {**bear(ann()), "Origin": "https://elsewhere.example"}
    assert visitor.client.post("/session/kubectl", headers=foreign).status_code == 403


@pytest.mark.attack
def test_at_the_public_address_no_kubernetes_token_is_taken(
    visit: Callable[..., Visitor], ann: Callable[..., str], flags: list[str]
) -> None:
    signing_in = [flag for flag in flags if flag.startswith(("--oidc", "--public", "--identity"))]
    visitor = visit(*signing_in, base_url=PUBLIC)
    headers = {**bear(ann()), "Origin": PUBLIC}
    assert visitor.client.post("/session/kubectl", headers=headers).status_code == 401
    assert visitor.client.get("/whoami").json()["next_step"] == "sign in: /session/start"


@pytest.mark.attack
def test_without_the_switch_there_is_no_such_way(browser: Any, ann: Callable[..., str]) -> None:
    headers = {**bear(ann()), "Origin": PUBLIC}
    assert browser.client.post("/session/kubectl", headers=headers).status_code in (404, 405)
    assert browser.client.get("/whoami", headers={"Host": "127.0.0.1:34567"}).status_code == 400


class Api:
    """Knows every token; `call_as_bearer` as the API server's."""

    async def call_as_bearer(self, token: str, *_: Any) -> dict[str, Any]:
        return {"status": {"userInfo": {"username": "ann"}}}


def jwt(**claims: Any) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.x"


@pytest.mark.parametrize(
    ("token", "lives_s"),
    [
        (jwt(exp=1_000_900), 900),
        (jwt(exp=9_000_000), 8 * 3600),
        (jwt(sub="x"), 3600),
        (jwt(exp="soon"), 3600),
        ("k8s-aws-v1.aHR0cHM6", 3600),
        ("opaque", 3600),
    ],
)
async def test_a_session_ends_with_its_token(token: str, lives_s: float) -> None:
    now = [1_000_000.0]
    sign_in = KubectlSignIn(Api(), clock=lambda: now[0])  # type: ignore[arg-type]
    request = _request(authorization=f"Bearer {token}")
    response = Response()
    assert sign_in.open(await sign_in.begin(request), request, response)
    cookie = response.headers["set-cookie"].partition(";")[0]
    now[0] += lives_s - 1
    assert sign_in.find(_request(cookie=cookie)) is not None
    now[0] += 1
    assert sign_in.find(_request(cookie=cookie)) is None


async def test_a_one_time_token_is_not_kept_for_long() -> None:
    now = [1_000_000.0]
    sign_in = KubectlSignIn(Api(), clock=lambda: now[0])  # type: ignore[arg-type]
    request = _request(authorization="Bearer opaque")
    one_time = await sign_in.begin(request)
    now[0] += 301
    assert not sign_in.open(one_time, request, Response())


def _request(**headers: str) -> Any:
    pairs = [(b"host", b"127.0.0.1:34567"), *((name.encode(), value.encode()) for name, value in headers.items())]
    return Request(
        {"type": "http", "method": "POST", "scheme": "http", "path": "/", "query_string": b"", "headers": pairs}
    )
