"""The person of whom the claims of a token speak, as the API server maps them."""

from typing import Any

import pytest
from fleetprof_webui.access.sessions import Sessions
from fleetprof_webui.access.subject import ClaimNames, Subject, UnusableClaims
from hypothesis import given
from hypothesis import strategies as st

ISSUER = "https://id.example.com"


@pytest.mark.parametrize(
    ("names", "claims", "subject"),
    [
        ({}, {"sub": "7"}, Subject(f"{ISSUER}#7", ())),
        ({"username_prefix": "-"}, {"sub": "7"}, Subject("7", ())),
        ({"username_prefix": "oidc:"}, {"sub": "7"}, Subject("oidc:7", ())),
        ({"username_claim": "email"}, {"email": "a@b"}, Subject("a@b", ())),
        ({"username_claim": "email"}, {"email": "a@b", "email_verified": True}, Subject("a@b", ())),
        ({"username_claim": "name"}, {"name": "ann"}, Subject(f"{ISSUER}#ann", ())),
        ({"groups_claim": "g"}, {"sub": "7", "g": ["x", "y"]}, Subject(f"{ISSUER}#7", ("x", "y"))),
        ({"groups_claim": "g", "groups_prefix": "o:"}, {"sub": "7", "g": "x"}, Subject(f"{ISSUER}#7", ("o:x",))),
        ({"groups_claim": "g"}, {"sub": "7"}, Subject(f"{ISSUER}#7", ())),
        ({}, {"sub": "7", "groups": ["x"]}, Subject(f"{ISSUER}#7", ())),
    ],
)
def test_names_are_mapped_as_the_api_server_maps_them(
    names: dict[str, str], claims: dict[str, Any], subject: Subject
) -> None:
    assert ClaimNames(ISSUER, **names).read_subject(claims) == subject


@pytest.mark.attack
@pytest.mark.parametrize(
    ("names", "claims"),
    [
        ({}, {}),
        ({}, {"sub": ""}),
        ({}, {"sub": ["7"]}),
        ({"username_claim": "email"}, {"email": "a@b", "email_verified": False}),
        ({"username_claim": "email"}, {"email": "a@b", "email_verified": "true"}),
        ({"username_prefix": "-"}, {"sub": "system:admin"}),
        ({"groups_claim": "g"}, {"sub": "7", "g": ["system:masters"]}),
        ({"groups_claim": "g"}, {"sub": "7", "g": {"system:masters": 1}}),
        ({"groups_claim": "g"}, {"sub": "7", "g": ["x", 1]}),
        ({"groups_claim": "g"}, {"sub": "7", "g": ["x"] * 1001}),
        ({}, {"sub": "a\nb"}),
    ],
)
def test_who_cannot_be_named_is_nobody(names: dict[str, str], claims: dict[str, Any]) -> None:
    with pytest.raises(UnusableClaims):
        ClaimNames(ISSUER, **names).read_subject(claims)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from(["sub", "g", "email", "email_verified"]), _VALUES))
def test_no_claims_make_anybody_of_the_system(claims: dict[str, Any]) -> None:
    try:
        subject = ClaimNames(ISSUER, username_prefix="-", groups_claim="g").read_subject(claims)
    except UnusableClaims:
        return
    assert not any(name.startswith("system:") for name in (subject.name, *subject.groups))


def test_a_session_ends_at_its_time_whatever_is_done_in_it() -> None:
    now = [100.0]
    sessions = Sessions(lambda: now[0])
    ann = Subject("ann", ())
    session = sessions.open(ann, "token", 200.0)
    for now[0] in (150.0, 199.0):
        assert (sessions.find(session), sessions.read_token(session)) == (ann, "token")
    now[0] = 200.0
    assert (sessions.find(session), sessions.read_token(session)) == (None, None)


@pytest.mark.attack
def test_what_the_service_keeps_opens_no_session_and_reveals_no_token() -> None:
    sessions = Sessions(lambda: 0.0)
    session = sessions.open(Subject("ann", ()), "the-token", 200.0)
    kept = repr(vars(sessions)["_open"])
    assert session not in kept
    assert "the-token" not in kept


@pytest.mark.attack
def test_one_person_does_not_drive_out_the_others() -> None:
    sessions = Sessions(lambda: 0.0)
    other = sessions.open(Subject("bob", ()), "t", 200.0)
    own = [sessions.open(Subject("ann", ()), "t", 200.0) for _ in range(50)]
    assert sessions.find(other) is not None
    assert sum(sessions.find(each) is not None for each in own) == 20
    assert sessions.find(own[-1]) is not None
