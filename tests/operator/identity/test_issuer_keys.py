"""Tokens checked with the issuer's keys: what must be true of one, and how often keys are asked for."""

import json
import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from fleetprof_operator.hub.access.authentication import CannotAuthenticate, Principal
from fleetprof_operator.identity.account_tokens import AccountTokens
from fleetprof_operator.identity.issuer_keys import REFRESH_AFTER_S, IssuerKeys
from harness.kubernetes.scripted_cluster import ScriptedCluster
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

ISSUER = "https://kubernetes.default.svc"
KEYS = {name: RSAKey.generate_key(2048, {"kid": name, "alg": "RS256"}) for name in ("one", "two", "stranger")}
KEYS_PATH = "/openid/v1/jwks"


def cluster_with(*names: str) -> ScriptedCluster:
    cluster = ScriptedCluster({"/.well-known/openid-configuration": {"issuer": ISSUER}})
    publish(cluster, *names)
    return cluster


def publish(cluster: ScriptedCluster, *names: str) -> None:
    cluster.objects[KEYS_PATH] = {"keys": [KEYS[name].as_dict(private=False) for name in names]}


def token_of_pod(pod: object) -> str:
    """A token whose claim about its pod is this one, none where it is None."""
    changes: dict[str, Any] = {"kubernetes.io": pod}
    return token(**changes)


def token(key: str = "one", kid: str | None = None, algorithm: str = "RS256", **changes: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": ["fleetprof.io"],
        "iat": now,
        "nbf": now,
        "exp": now + 3600,
        "sub": "system:serviceaccount:team-a:default",
        "kubernetes.io": {"namespace": "team-a", "pod": {"name": "llama-0", "uid": "u-1"}},
    }
    claims = {name: value for name, value in {**claims, **changes}.items() if value is not None}
    secret = KEYS[key] if algorithm == "RS256" else OctKey.import_key("x" * 32)
    return jwt.encode({"alg": algorithm, "kid": kid or key}, claims, secret)


async def test_a_good_token_is_its_pods() -> None:
    principal = await IssuerKeys(cluster_with("one")).authenticate(token())
    assert principal == Principal("team-a", "llama-0", "u-1")
    assert principal is not None
    assert abs(principal.expires_unix_ns / 1e9 - time.time() - 3600) < 60


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "nonsense",
        token(aud=["https://kubernetes.default.svc"]),
        token(aud=None),
        token(iss="https://elsewhere"),
        token(exp=1),
        token(exp=None),
        token(iat=None),
        token(iat=int(time.time()) + 3600),
        token(nbf=int(time.time()) + 3600),
        token_of_pod(None),
        token_of_pod({"namespace": "team-a"}),
        token_of_pod({"namespace": "team-a", "pod": {"name": "llama-0"}}),
        token_of_pod({"pod": {"name": "llama-0", "uid": "u"}}),
        token_of_pod("team-a"),
        token("stranger", kid="one"),
        token("stranger"),
        token(algorithm="HS256"),
        token()[:-4] + "AAAA",
        "x" * (17 << 10),
    ],
    ids=[
        *(
            "empty",
            "no token",
            "another audience",
            "no audience",
            "another issuer",
            "expired",
            "no expiry",
            "no time of issue",
            "issued later",
            "not yet valid",
        ),
        *("no Kubernetes claim", "no pod", "a pod without a uid", "no namespace", "a claim of another type"),
        *("another key under a known name", "an unknown key", "another algorithm", "another signature", "too long"),
    ],
)
async def test_what_is_not_good_is_nobodys(shown: str) -> None:
    assert await IssuerKeys(cluster_with("one")).authenticate(shown) is None


async def test_a_token_without_a_signature_is_nobodys() -> None:
    payload = token().split(".")[1]
    header = urlsafe_b64encode(json.dumps({"alg": "none", "kid": "one"}).encode()).decode().rstrip("=")
    unsigned = f"{header}.{payload}."
    assert await IssuerKeys(cluster_with("one")).authenticate(unsigned) is None


async def test_new_keys_are_found_and_unknown_ones_are_not_asked_for_all_the_time() -> None:
    now = 0.0
    cluster = cluster_with("one")
    authenticator = IssuerKeys(cluster, clock=lambda: now)
    assert await authenticator.authenticate(token("one"))
    publish(cluster, "one", "two")
    for _ in range(5):
        assert await authenticator.authenticate(token("two")) is None
    assert cluster.calls.count(f"GET {KEYS_PATH}") == 1
    now = REFRESH_AFTER_S
    assert await authenticator.authenticate(token("two"))
    assert cluster.calls.count(f"GET {KEYS_PATH}") == 2


async def test_a_key_that_was_withdrawn_ends_with_the_next_look() -> None:
    now = 0.0
    cluster = cluster_with("one")
    authenticator = IssuerKeys(cluster, clock=lambda: now)
    assert await authenticator.authenticate(token("one"))
    publish(cluster, "two")
    now = REFRESH_AFTER_S
    assert await authenticator.authenticate(token("two"))
    assert await authenticator.authenticate(token("one")) is None


async def test_keys_that_cannot_be_read_are_no_verdict() -> None:
    cluster = cluster_with("one")
    cluster.is_away = True
    authenticator = IssuerKeys(cluster)
    for _ in range(3):
        with pytest.raises(CannotAuthenticate):
            await authenticator.authenticate(token())
    assert len(cluster.calls) == 1


async def test_an_account_s_token_is_no_better_than_unknown_without_keys() -> None:
    cluster = cluster_with("one")
    cluster.is_away = True
    readers = AccountTokens(IssuerKeys(cluster), namespace="team-a", name="default")
    assert await readers.admit(token()) is None
    cluster.is_away = False
    assert await AccountTokens(IssuerKeys(cluster), namespace="team-a", name="default").admit(token()) is True
