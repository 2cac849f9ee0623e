"""Reviews in, reviews out."""

import base64
import json
from typing import Any

import pytest
from fleetprof_operator.injection.admission import InvalidReview, allow, read_head, read_review, refuse
from fleetprof_operator.injection.requester import note_caller
from hypothesis import given
from hypothesis import strategies as st

NOTE = "fleetprof.io/requested-by"
PATH = "/metadata/annotations/fleetprof.io~1requested-by"


def review(**changes: Any) -> dict[str, Any]:
    request = {
        "uid": "r-1",
        "operation": "CREATE",
        "namespace": "team-a",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "ada"},
        "object": {"metadata": {}},
        **changes,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "kind: must be AdmissionReview"),
        (b'{"a": ' + b"[" * 100_000, "not JSON"),
        (b"[]", "kind: must be AdmissionReview"),
        (b'{"kind": "Pod"}', "kind: must be AdmissionReview"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "apiVersion: must be"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "request: must be an object"),
        (json.dumps(review(uid="")).encode(), "uid: must be a text"),
        (json.dumps(review(object=None)).encode(), "object: must be an object"),
        (json.dumps(review(userInfo=[])).encode(), "userInfo: must be an object"),
        (json.dumps(review(resource={})).encode(), "resource: must be a text"),
        (json.dumps(review(namespace="kube-system/secrets?x=")).encode(), "namespace: must be a DNS label"),
        (json.dumps(review(namespace="../../../apis/apps/v1/deployments")).encode(), "namespace: must be a DNS label"),
    ],
)
def test_a_body_that_is_no_review_is_named(body: bytes, message: str) -> None:
    with pytest.raises(InvalidReview, match=message):
        read_review(body)


def test_an_object_stays_text_until_it_is_read() -> None:
    deep = json.dumps(review()).replace('{"metadata": {}}', '{"metadata": ' + "[" * 50_000 + "]" * 50_000 + "}")
    try:
        request = read_review(deep.encode())
    except InvalidReview:
        return  # found while the review was taken apart
    with pytest.raises(InvalidReview, match="object is not JSON"):
        request.read_object()


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (json.dumps(review()).encode(), ("r-1", "team-a")),
        (json.dumps(review(), separators=(",", ":")).encode()[:150], ("r-1", "team-a")),
        (b"", ("", "")),
        # What a user can write in front of the namespace is a JSON text, whose quotes are escaped.
        (
            json.dumps({"uid": "r-1", "name": 'x","namespace":"team-b', "namespace": "team-a"}).encode(),
            ("r-1", "team-a"),
        ),
    ],
)
def test_the_head_of_a_review_says_whom_to_answer(head: bytes, expected: tuple[str, str]) -> None:
    assert read_head(head) == expected


@given(st.binary() | st.recursive(st.none() | st.text(), lambda v: st.dictionaries(st.text(), v)).map(json.dumps))
def test_no_body_is_an_error_of_ours(body: bytes | str) -> None:
    with pytest.raises(InvalidReview):
        read_review(body if isinstance(body, bytes) else body.encode())


def test_answers_have_the_form_that_the_api_server_wants() -> None:
    answer = allow("r-1", [{"op": "add", "path": "/a", "value": 1}], ["x" * 300, "two\nlines"])
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answer["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("r-1", True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/a", "value": 1}]
    assert [len(text) for text in response["warnings"]] == [256, 9]
    assert "\n" not in response["warnings"][1]
    assert allow("r-1")["response"] == {"uid": "r-1", "allowed": True}
    assert refuse("r-1", "no")["response"]["status"]["message"] == "no"


def noted(**changes: Any) -> Any:
    answer = note_caller(read_review(json.dumps(review(**changes)).encode()))["response"]
    if not answer["allowed"]:
        return answer["status"]["message"]
    return json.loads(base64.b64decode(answer["patch"])) if "patch" in answer else []


def annotated(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {"other": "x", **({NOTE: value} if value else {})}}}


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({"metadata": {"name": "x"}}, {"op": "add", "path": "/metadata/annotations", "value": {NOTE: "ada"}}),
        ({}, {"op": "add", "path": "/metadata", "value": {"annotations": {NOTE: "ada"}}}),
        (annotated(None), {"op": "add", "path": PATH, "value": "ada"}),
        (
            annotated("eve"),
            {"op": "replace", "path": PATH, "value": "ada"},
        ),
    ],
)
def test_who_makes_a_request_is_noted_whatever_they_say(document: dict[str, Any], operation: dict[str, Any]) -> None:
    assert noted(object=document) == [operation]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("ada", "ada", []),
        ("ada", None, [{"op": "add", "path": PATH, "value": "ada"}]),
        ("ada", "eve", "cannot be changed"),
        (None, "eve", "cannot be changed"),
        (None, None, []),
    ],
)
def test_a_note_never_changes(before: str | None, after: str | None, expected: Any) -> None:
    found = noted(operation="UPDATE", object=annotated(after), oldObject=annotated(before))
    assert expected in found if isinstance(expected, str) else found == expected


def test_nobody_is_no_requester() -> None:
    assert "nobody could be noted" in noted(userInfo={})


NOTED = "fleetprof.io/changed-by"
AT = "/metadata/annotations/fleetprof.io~1changed-by"


def policy(spec: str, author: str | None) -> dict[str, Any]:
    annotations = {"a": "b"} | ({NOTED: author} if author is not None else {})
    return {"metadata": {"annotations": annotations}, "spec": {"mode": spec}}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("operation", "before", "after", "expected"),
    [
        ("CREATE", None, policy("Capture", None), [{"op": "add", "path": AT, "value": "ada"}]),
        ("CREATE", None, policy("Capture", "eve"), [{"op": "replace", "path": AT, "value": "ada"}]),
        ("UPDATE", policy("DryRun", "eve"), policy("Capture", "eve"), [{"op": "replace", "path": AT, "value": "ada"}]),
        ("UPDATE", policy("DryRun", None), policy("Capture", None), [{"op": "add", "path": AT, "value": "ada"}]),
        ("UPDATE", policy("DryRun", "eve"), policy("DryRun", "eve"), []),
        ("UPDATE", policy("DryRun", "eve"), policy("DryRun", "bob"), [{"op": "replace", "path": AT, "value": "eve"}]),
        ("UPDATE", policy("DryRun", "eve"), policy("DryRun", None), [{"op": "add", "path": AT, "value": "eve"}]),
        ("UPDATE", policy("DryRun", None), policy("DryRun", "bob"), [{"op": "remove", "path": AT}]),
    ],
)
def test_who_writes_a_policys_spec_is_noted_whatever_they_say(
    operation: str, before: dict[str, Any] | None, after: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    resource = review()["request"]["resource"] | {"resource": "profilepolicies"}
    more = {"oldObject": before} if before is not None else {}
    assert noted(operation=operation, resource=resource, object=after, **more) == expected


@pytest.mark.attack
@pytest.mark.parametrize(("before", "after"), [(None, "eve"), ("ada", "eve")])
def test_the_author_that_a_request_names_never_changes(before: str | None, after: str | None) -> None:
    def named(author: str | None) -> dict[str, Any]:
        return {"metadata": {"annotations": {} if author is None else {"fleetprof.io/policy-author": author}}}

    assert "cannot be changed" in noted(operation="UPDATE", object=named(after), oldObject=named(before))
