"""A TokenReview's verdict becomes a principal, is remembered for a while, and forgotten in time."""

from typing import Any

import pytest
from fleetprof_operator.hub.access.authentication import CannotAuthenticate, Principal
from fleetprof_operator.identity import token_review
from fleetprof_operator.identity.token_review import TokenReviews
from harness.kubernetes.scripted_cluster import ScriptedCluster
from joserfc import jwt
from joserfc.jwk import OctKey

POD = {
    "authentication.kubernetes.io/pod-name": ["llama-0"],
    "authentication.kubernetes.io/pod-uid": ["u-1"],
    "authentication.kubernetes.io/node-name": ["node-7"],
}


def status(**changes: Any) -> dict[str, Any]:
    user = {"username": "system:serviceaccount:team-a:default", "extra": POD, **changes.pop("user", {})}
    return {"authenticated": True, "audiences": ["fleetprof.io"], "user": user, **changes}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def token(expires: float = 2_000_000) -> str:
    return jwt.encode({"alg": "HS256"}, {"exp": expires}, OctKey.import_key("x" * 32))


@pytest.mark.parametrize(
    ("verdict", "principal"),
    [
        (status(), Principal("team-a", "llama-0", "u-1")),
        ({}, None),
        (status(authenticated=False), None),
        (status(audiences=["https://kubernetes.default.svc"]), None),
        (status(audiences=[]), None),
        (status(user={"extra": {}}), None),
        (status(user={"extra": None}), None),
        (status(user={"extra": {**POD, "authentication.kubernetes.io/pod-uid": []}}), None),
        (status(user={"extra": {**POD, "authentication.kubernetes.io/pod-uid": ["a", "b"]}}), None),
        (status(user={"extra": {**POD, "authentication.kubernetes.io/pod-name": [""]}}), None),
        (status(user={"username": "admin"}), None),
        (status(user={"username": "system:serviceaccount:a:b:c"}), None),
        (status(user={"username": "system:node:node-7"}), None),
    ],
)
async def test_who_is_a_pod(verdict: dict[str, Any], principal: Principal | None) -> None:
    cluster = ScriptedCluster()
    cluster.review = lambda _: verdict
    assert await TokenReviews(cluster, clock=Clock()).authenticate(token()) == principal


@pytest.mark.parametrize(
    ("good", "expires_in_s", "later_s", "reviews"),
    [
        (True, 3600, 59, 1),
        (True, 3600, 61, 2),
        (True, 30, 29, 1),
        (True, 30, 31, 2),
        (False, 3600, 4, 1),
        (False, 3600, 6, 2),
    ],
)
async def test_how_long_a_verdict_is_remembered(good: bool, expires_in_s: int, later_s: int, reviews: int) -> None:
    clock, cluster = Clock(), ScriptedCluster()
    cluster.review = lambda _: status(authenticated=good)
    authenticator = TokenReviews(cluster, clock=clock)
    shown = token(clock.now + expires_in_s)
    await authenticator.authenticate(shown)
    clock.now += later_s
    await authenticator.authenticate(shown)
    assert len(cluster.calls) == reviews


async def test_no_token_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_review, "MOST_TOKENS", 3)
    cluster = ScriptedCluster()
    cluster.review = lambda _: status()
    authenticator = TokenReviews(cluster, clock=Clock())
    tokens = [token(2_000_000 + i) for i in range(5)]
    for shown in tokens:
        await authenticator.authenticate(shown)
    assert authenticator.count_kept() == 3
    assert not any(shown in repr(vars(authenticator)) for shown in tokens)


@pytest.mark.parametrize("shown", ["", "x" * (17 << 10)])
async def test_what_cannot_be_a_token_is_not_asked_about(shown: str) -> None:
    cluster = ScriptedCluster()
    assert await TokenReviews(cluster).authenticate(shown) is None
    assert cluster.calls == []


async def test_an_api_server_that_is_away_is_no_verdict() -> None:
    cluster = ScriptedCluster()
    cluster.is_away = True
    with pytest.raises(CannotAuthenticate, match="does not review tokens"):
        await TokenReviews(cluster).authenticate(token())


class Beforehand:
    """Says that words which begin with `ey` may be tokens."""

    def __init__(self) -> None:
        self.is_away = False

    async def authenticate(self, token: str) -> Principal | None:
        if self.is_away:
            raise CannotAuthenticate("no keys")
        return Principal("team-a", "llama-0", "u-1") if token.startswith("ey") else None


@pytest.mark.attack
async def test_the_api_server_is_asked_only_about_tokens_that_it_signed() -> None:
    cluster = ScriptedCluster()
    cluster.review = lambda _: status()
    beforehand = Beforehand()
    authenticator = TokenReviews(cluster, beforehand=beforehand, clock=Clock())
    for number in range(100):
        assert await authenticator.authenticate(f"word-{number}") is None
    assert (cluster.calls, authenticator.count_kept()) == ([], 0)
    assert await authenticator.authenticate(token()) is not None
    assert len(cluster.calls) == 1


async def test_where_the_keys_cannot_be_read_the_api_server_decides_alone() -> None:
    cluster = ScriptedCluster()
    cluster.review = lambda _: status(authenticated=False)
    beforehand = Beforehand()
    beforehand.is_away = True
    authenticator = TokenReviews(cluster, beforehand=beforehand, clock=Clock())
    assert await authenticator.authenticate("word") is None
    cluster.review = lambda _: status()
    assert await authenticator.authenticate(token()) is not None
    assert len(cluster.calls) == 2


async def test_a_principal_is_as_good_as_its_token() -> None:
    cluster = ScriptedCluster()
    cluster.review = lambda _: status()
    principal = await TokenReviews(cluster, clock=Clock()).authenticate(token(1_000_100))
    assert principal is not None
    assert principal.expires_unix_ns == 1_000_100 * 10**9
