"""Access, and what every answer carries: the local user with a one-time token, and nobody else."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fleetprof_webui.app import create_application
from fleetprof_webui.routes import health
from starlette.testclient import TestClient
from webui.conftest import HOST, ORIGIN, WRITE, Site

CLOSED = [
    *(
        "/fleet",
        "/requests",
        "/requests/team-a/slow",
        "/requests/team-a/slow/events",
        "/requests/team-a/slow/stacks",
        "/whoami",
    ),
    *("/reports/team-a/slow", "/reports/team-a/slow/files/report.json", "/reports/team-a/slow/timeline/fleet.bin"),
    "/diff?base=team-a/slow&new=team-a/healthy",
    "/telemetry/team-a/Job/llama",
]
OPEN = ["/healthz", "/readyz", "/metrics", "/openapi.json"]


@pytest.mark.parametrize("path", CLOSED)
def test_nothing_of_a_capture_is_shown_to_a_stranger(stranger: Site, path: str) -> None:
    answered = stranger.client.get(path)
    assert answered.status_code == 401
    assert "fleetprof ui" in answered.json()["next_step"]


@pytest.mark.parametrize("path", OPEN)
def test_what_names_nobody_is_open(stranger: Site, path: str) -> None:
    assert stranger.client.get(path).status_code == 200


def test_in_a_cluster_metrics_are_at_a_port_of_their_own(stranger: Site) -> None:
    with TestClient(create_application(None, hosts=[HOST], metrics=False), base_url=ORIGIN) as pages:
        assert pages.get("/healthz").status_code == 200
        assert pages.get("/metrics", headers={"Accept": "application/json"}).status_code == 404
    alone = FastAPI()
    alone.include_router(health.metrics_router)
    alone.state = stranger.client.app.state  # type: ignore[attr-defined]
    assert "fleetprof_webui" in TestClient(alone).get("/metrics").text


@pytest.mark.attack
def test_a_token_opens_one_session(stranger: Site) -> None:
    token = stranger.access.make_token()
    first = stranger.client.post("/session", json={"token": token}, headers=WRITE)
    assert first.status_code == 204
    cookie = first.headers["set-cookie"]
    assert cookie.startswith("fleetprof-8770=")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert token not in cookie
    assert stranger.client.get("/whoami").json()["mode"] == "local"
    stranger.client.cookies.clear()
    assert stranger.client.post("/session", json={"token": token}, headers=WRITE).status_code == 401
    assert stranger.client.get("/whoami").status_code == 401


def test_who_comes_without_a_session_makes_one_further_token_known(stranger: Site) -> None:
    token = stranger.access.make_token()
    stranger.client.get("/whoami")
    assert stranger.announced_tokens == [], "the first token is still unused"
    stranger.client.post("/session", json={"token": token}, headers=WRITE)
    stranger.client.get("/whoami")
    assert stranger.announced_tokens == [], "nobody came without a session"
    stranger.client.cookies.clear()
    stranger.client.post("/session", json={"token": token}, headers=WRITE)
    for _ in range(3):
        stranger.client.get("/whoami")
    (further,) = stranger.announced_tokens
    assert stranger.client.post("/session", json={"token": further}, headers=WRITE).status_code == 204


@pytest.mark.parametrize("token", ["", "x", "é", "A" * 43])
def test_a_made_up_token_or_cookie_opens_nothing(stranger: Site, token: str) -> None:
    stranger.access.make_token()
    assert stranger.client.post("/session", json={"token": token}, headers=WRITE).status_code == 401
    answered = stranger.client.get("/whoami", headers={b"Cookie": f"fleetprof-8770={token}".encode()})
    assert answered.status_code == 401


def test_signing_out_ends_the_session(stranger: Site) -> None:
    stranger.sign_in()
    cookie = dict(stranger.client.cookies)
    left = stranger.client.delete("/session", headers=WRITE)
    assert (left.status_code, left.json()) == (200, {"continue_at": ""})
    stranger.client.cookies.update(cookie)
    assert stranger.client.get("/whoami").status_code == 401


@pytest.mark.attack
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", f"{HOST}.evil.example", "", "[::1]:8770"]
)
def test_a_foreign_name_is_refused(stranger: Site, host: str) -> None:
    """A page that rebinds its name to 127.0.0.1 sends that name."""
    stranger.sign_in()
    for path in ("/fleet", "/healthz", "/", "/assets/x.js"):
        assert stranger.client.get(path, headers={"Host": host, "Accept": "text/html"}).status_code == 400


@pytest.mark.attack
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Fleetprof-Request": "1"},
        {"Origin": ORIGIN},
        {"Origin": "http://evil.example", "X-Fleetprof-Request": "1"},
        {"Origin": "null", "X-Fleetprof-Request": "1"},
        {"Origin": f"https://{HOST}", "X-Fleetprof-Request": "1"},
        {"Origin": "http://localhost:8771", "X-Fleetprof-Request": "1"},
    ],
)
@pytest.mark.parametrize("path", ["/session", "/requests", "/requests/team-b/running/cancel"])
def test_a_write_from_another_site_is_refused(stranger: Site, path: str, headers: dict[str, str]) -> None:
    stranger.sign_in()
    assert stranger.client.post(path, json={}, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "path", ["/fleet", "/nowhere", "/fleet?limit=x", "/reports/team-a/slow/files/report.json", "/", "/requests/x/y/z"]
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_every_answer_forbids_inline_script_and_framing(stranger: Site, path: str, accept: str) -> None:
    stranger.sign_in()
    headers = stranger.client.get(path, headers={"Accept": accept}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-opener-policy"] == "same-origin-allow-popups"


def test_the_audit_log_has_writes_sign_ins_and_refusals_but_no_token(
    stranger: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fleetprof.audit")
    token = stranger.access.make_token()
    stranger.client.get("/fleet")
    stranger.client.post("/session", json={"token": token}, headers=WRITE)
    stranger.client.get("/fleet")
    stranger.client.post("/requests", json={"yaml": ""}, headers=WRITE)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "fleetprof.audit"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", "/fleet", 401),
        ("POST", "/session", 204),
        ("POST", "/requests", 403),
    ]
    assert lines[2]["who"]
    assert token not in caplog.text


@pytest.mark.parametrize("path", ["/", "/fleet", "/requests/team-a/slow", "/reports/a/b", "/diff", "/fleet/a/b/c"])
def test_a_person_gets_the_page_and_a_program_the_json(
    make_site: Callable[..., Site], tmp_path: Path, path: str
) -> None:
    (tmp_path / "built" / "assets").mkdir(parents=True)
    (tmp_path / "built/index.html").write_text("<!doctype html><title>built</title>")
    (tmp_path / "built/assets/app-1.js").write_text("1")
    (tmp_path / "secret").write_text("s")
    site = make_site(static=tmp_path / "built")
    page = site.client.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.text) == (200, "<!doctype html><title>built</title>")
    assert "Accept" in page.headers["vary"]
    assert site.client.get(path, headers={"Accept": "application/json"}, follow_redirects=False).status_code in (
        307,
        401,
    )
    assert site.client.get("/assets/app-1.js").headers["cache-control"].endswith("immutable")
    for climbing in (
        "/assets/../../secret",
        "/assets/%2e%2e/%2e%2e/secret",
        "/%2e%2e/secret",
        "/assets/none.js",
        "/a%00b",
    ):
        assert site.client.get(climbing).status_code == 404


def test_without_the_frontend_a_page_says_how_to_build_it(stranger: Site) -> None:
    page = stranger.client.get("/fleet", headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert "make webui" in page.text
