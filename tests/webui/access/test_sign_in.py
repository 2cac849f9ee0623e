"""Signing in at a real OpenID Connect provider, and what a session may see by the rights of a real API server."""

import json
import logging
import ssl
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from .conftest import PUBLIC, WRITE, Browser

pytestmark = pytest.mark.cluster


@pytest.mark.attack
def test_nobody_sees_anything_before_signing_in(browser: Browser) -> None:
    for address in ("/fleet", "/requests", "/requests/team-a/uid-team-a", "/whoami"):
        answer = browser.client.get(address)
        assert answer.status_code == 401, address
        assert "/session/start" in answer.json()["next_step"]


@pytest.mark.parametrize(
    ("groups", "namespaces", "listed"),
    [
        (["team-a"], ["team-a"], ["uid-team-a"]),
        (["chiefs"], None, ["uid-team-a", "uid-team-b"]),
        ([], [], []),
    ],
)
def test_a_person_sees_what_the_api_server_lets_them_read(
    browser: Browser, groups: list[str], namespaces: list[str] | None, listed: list[str]
) -> None:
    browser.provider.sign_in_as("ann", *groups)
    assert browser.sign_in().headers["location"] == "/requests"
    me = browser.client.get("/whoami").json()
    assert me["name"] == f"{browser.provider.issuer}#ann"
    assert [group for group in me["groups"] if group != "system:authenticated"] == [f"oidc:{group}" for group in groups]
    assert (me["mode"], me["namespaces"], me["may_capture"]) == ("oidc", namespaces, False)
    page = browser.client.get("/requests").json()
    assert sorted(item["uid"] for item in page["items"]) == listed
    assert page["total"] == len(listed)
    assert sorted(facet["value"] for facet in page["facets"]["namespace"]) == sorted(uid[4:] for uid in listed)
    for namespace in ("team-a", "team-b"):
        expected = 200 if f"uid-{namespace}" in listed else 404
        assert browser.client.get(f"/requests/{namespace}/uid-{namespace}").status_code == expected


@pytest.mark.attack
@pytest.mark.parametrize(
    "address",
    [
        "/requests/team-b/uid-team-b",
        "/requests/team-b/uid-team-b/events",
        "/reports/team-b/uid-team-b",
        "/reports/team-b/uid-team-b/files/ledger.json",
        "/fleet/team-b/Job/llama",
        "/diff?base=team-b/uid-team-b&new=team-a/uid-team-a",
    ],
)
def test_without_rights_it_is_as_if_it_were_not_there(
    browser: Browser, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser.sign_in()
    with caplog.at_level(logging.INFO, "fleetprof.audit"):
        there = browser.client.get(address)
        not_there = browser.client.get(address.replace("team-b", "nowhere"))
    assert (there.status_code, there.json()) == (404, not_there.json())
    (line, _) = [json.loads(r.getMessage()) for r in caplog.records if "may_not_read" in r.getMessage()]
    assert (line["who"], line["may_not_read"]) == (f"{browser.provider.issuer}#ann", "team-b")


def test_the_session_s_cookie_is_out_of_reach(browser: Browser) -> None:
    cookies = [header for header in browser.sign_in().headers.get_list("set-cookie") if "Max-Age=0" not in header]
    (cookie,) = cookies
    assert cookie.startswith("__Host-fleetprof=")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert attributes == {"httponly", "secure", "samesite=lax", "path=/"}


@pytest.mark.attack
def test_the_browser_never_holds_the_person_s_token(browser: Browser) -> None:
    browser.sign_in()
    assert all("eyJ" not in value for value in browser.client.cookies.values())
    assert "eyJ" not in browser.client.get("/whoami").text


@pytest.mark.attack
def test_a_session_that_was_there_before_signing_in_is_not_the_person_s(browser: Browser) -> None:
    planted = "p" * 43
    browser.client.cookies.set("__Host-fleetprof", planted, domain="fleetprof.example.com", path="/")
    assert browser.client.get("/whoami").status_code == 401
    browser.sign_in()
    first = browser.client.cookies["__Host-fleetprof"]
    assert first != planted
    browser.sign_in()
    assert browser.client.cookies["__Host-fleetprof"] != first
    assert browser.site.sessions.find(first) is None


@pytest.mark.attack
def test_a_return_counts_only_in_the_browser_that_left(make_browser: Callable[..., Browser]) -> None:
    attacker = make_browser()
    address = attacker.leave()
    victim = make_browser(of=attacker)
    assert victim.come_back(address).status_code == 401
    victim.leave()
    assert victim.come_back(address).status_code == 401
    assert victim.client.get("/whoami").status_code == 401


@pytest.mark.attack
@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-client"},
        {"iss": "https://elsewhere.example.com"},
        {"nonce": "another"},
        {"exp": 1_000_000_000},
        {"sub": ""},
        {"sub": 7},
        {"groups": "system:masters" * 100},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_opens_nothing(browser: Browser, claims: dict[str, Any]) -> None:
    browser.provider.sign_in_as("ann", **claims)
    assert browser.sign_in().status_code == 401
    assert browser.client.get("/whoami").status_code == 401


@pytest.mark.attack
def test_a_token_that_another_key_signed_opens_nothing(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.identity.keys import Signer

    true = browser.provider.signer
    browser.provider.signer = Signer()
    monkeypatch.setattr(browser.provider.signer, "public_keys", true.public_keys)
    try:
        assert browser.sign_in().status_code == 401
    finally:
        browser.provider.signer = true


@pytest.mark.attack
@pytest.mark.parametrize("then", ["https://evil.example.com/", "//evil.example.com", "/\\evil.example.com", "evil"])
def test_nobody_is_sent_to_another_site(browser: Browser, then: str) -> None:
    assert browser.sign_in(then).headers["location"] == "/fleet"


def test_an_expired_token_ends_the_session(browser: Browser) -> None:
    import time

    browser.provider.sign_in_as("ann", "team-a", exp=int(time.time()) - 5)  # within the leeway of clocks
    assert browser.sign_in().status_code == 303
    assert browser.client.get("/whoami").status_code == 401


@pytest.mark.attack
def test_signing_out_needs_our_own_page_and_ends_the_session(browser: Browser) -> None:
    browser.sign_in()
    session = browser.client.cookies["__Host-fleetprof"]
    for headers in ({}, {"Origin": "https://evil.example.com", "X-Fleetprof-Request": "1"}, {"Origin": PUBLIC}):
        assert browser.client.delete("/session", headers=headers).status_code == 403
    assert browser.client.get("/whoami").status_code == 200
    left = browser.client.delete("/session", headers=WRITE)
    assert left.status_code == 200
    assert browser.site.sessions.find(session) is None
    assert browser.client.get("/whoami").status_code == 401


@pytest.mark.attack
@pytest.mark.parametrize("header", ["X-Forwarded-User", "Kubeflow-Userid", "X-Remote-Group", "Impersonate-User"])
def test_a_header_that_names_somebody_is_refused_and_noted(
    browser: Browser, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser.sign_in()
    with caplog.at_level(logging.INFO, "fleetprof.audit"):
        answer = browser.client.get("/whoami", headers={header: "chief"})
    assert answer.status_code == 400
    assert any("identity_refused" in record.getMessage() for record in caplog.records)


@pytest.mark.attack
def test_another_host_is_not_ours(browser: Browser) -> None:
    browser.sign_in()
    assert browser.client.get("/whoami", headers={"Host": "evil.example.com"}).status_code == 400


def test_signing_out_goes_on_at_the_provider_which_sends_people_back(browser: Browser) -> None:
    browser.sign_in()
    left = browser.client.delete("/session", headers=WRITE).json()["continue_at"]
    assert "id_token" not in left  # the person's token stays with the service
    context = ssl.create_default_context(cafile=str(browser.provider.ca_file))
    sent = httpx2.get(left, verify=context, trust_env=False)
    assert (sent.status_code, sent.headers["location"]) == (307, f"{PUBLIC}/")
