"""A proxy that signs people in: its signed word counts, and nothing else does."""

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from harness.identity.keys import Signer
from harness.identity.provider import Issuer

from .conftest import Browser

pytestmark = pytest.mark.cluster
HEADER = "X-Proxy-Assertion"


@pytest.fixture
def proxied(make_browser: Callable[..., Browser], flags: list[str], provider: Issuer) -> Browser:
    """A service behind a proxy that signs with the provider's key."""
    flags[:] = [flag for flag in flags if not flag.startswith("--oidc-")]
    return make_browser(
        f"--proxy-jwt-header={HEADER}",
        f"--proxy-jwks-url={provider.issuer}/keys",
        "--proxy-jwt-issuer=the-proxy",
        "--proxy-jwt-audience=fleetprof",
        "--username-prefix=proxy:",
    )


def claims(**other: Any) -> dict[str, Any]:
    return {"iss": "the-proxy", "aud": "fleetprof", "sub": "ann", "groups": ["team-a"]} | other


def test_the_proxy_s_signed_word_counts(proxied: Browser) -> None:
    token = proxied.provider.signer.sign(claims())
    # Proxies name people in plain headers as well; those are not read.
    me = proxied.client.get("/whoami", headers={HEADER: token, "X-Forwarded-User": "chief"}).json()
    assert (me["name"], me["groups"], me["mode"]) == ("proxy:ann", ["oidc:team-a"], "proxy")
    assert me["namespaces"] == ["team-a"]


def test_without_its_word_nobody_is_known(proxied: Browser) -> None:
    assert proxied.client.get("/whoami").status_code == 401


@pytest.mark.attack
@pytest.mark.parametrize(
    "other",
    [{"iss": "another"}, {"aud": "another"}, {"exp": 1_000_000_000}, {"exp": None}, {"sub": None}],
    ids=str,
)
def test_a_word_that_is_not_for_us_is_refused(proxied: Browser, other: dict[str, Any]) -> None:
    token = proxied.provider.signer.sign(claims(**other))
    assert proxied.client.get("/whoami", headers={HEADER: token}).status_code == 400


@pytest.mark.attack
def test_a_forged_word_is_refused_and_noted(proxied: Browser, caplog: pytest.LogCaptureFixture) -> None:
    good = proxied.provider.signer.sign(claims())
    unsigned = "eyJhbGciOiJub25lIn0." + good.split(".")[1] + "."
    with caplog.at_level(logging.INFO, "fleetprof.audit"):
        for headers in (
            {HEADER: Signer().sign(claims())},
            {HEADER: unsigned},
            {HEADER: "ann"},
            {HEADER: good[:-6] + "AAAAAA"},
            {"X-Forwarded-User": "ann"},
            {"X-Auth-Request-User": "ann", "X-Auth-Request-Groups": "system:masters"},
        ):
            assert proxied.client.get("/requests", headers=headers).status_code == 400, headers
    assert sum("identity_refused" in record.getMessage() for record in caplog.records) == 6


def test_the_session_of_a_proxy_is_the_proxy_s(proxied: Browser) -> None:
    token = proxied.provider.signer.sign(claims(exp=int(time.time()) + 60))
    assert proxied.client.get("/requests", headers={HEADER: token}).status_code == 200
    assert proxied.client.get("/requests").status_code == 401
    assert proxied.client.get("/session/start").status_code == 404
