"""Argo CD and Flux on our objects by the snippets of the docs, run as they run them, and of theirs there."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest
import yaml
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.policies.policy_state import PolicyState
from fleetprof_operator.profilerequests.status import Fact, build_status, finish, from_capture
from harness.gitops import argo_cd, flux
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.documents.policies import VALID
from harness.kubernetes.foreign_kinds import install_kinds

_DOCS: Final = Path(__file__).parents[2] / "docs"
_AT: Final = 1_795_000_000 * 10**9
_KINDS: Final = ("ProfileRequest", "ProfilePolicy")


def _read_blocks(page: str) -> list[str]:
    """The indented blocks of a page."""
    return [dedent(block) for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", (_DOCS / page).read_text(), re.M)]


def _read_snippet(key: str) -> Any:
    """The value of `key` in the block of docs/request.md that has it."""
    (block,) = [block for block in _read_blocks("request.md") if key in block]
    document = yaml.safe_load(block)
    return (document.get("data") or document["spec"])[key]


def _request(wanted: dict[str, Any], generation: int = 1, observed: int = 1) -> dict[str, Any]:
    status = build_status({}, wanted, target="Job/llama", generation=observed, now_unix_ns=_AT)
    return _object("ProfileRequest", generation, status)


def _object(kind: str, generation: int, status: dict[str, Any] | None) -> dict[str, Any]:
    metadata = {"name": "five", "namespace": "team", "generation": generation}
    made = {"apiVersion": "fleetprof.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": {}}
    return made if status is None else made | {"status": status}


def _capture(finished: bool, *succeeded: str) -> dict[str, Any]:
    status, reason, message = succeeded
    conditions = [pb.Condition(type="Succeeded", status=status, reason=reason, message=message)]
    return from_capture(pb.CaptureStatus(conditions=conditions, finished=finished))


def _policy(**spec: Any) -> dict[str, Any]:
    body = _object("ProfilePolicy", 1, None)
    body["metadata"]["uid"] = "uid-1"
    body["spec"] = VALID["spec"] | spec
    return body | {"status": PolicyState(body, _AT).build_status(_AT)}


_ENDED: Final = finish(_capture(True, "True", "Complete", "2 of 2 ranks are captured"), _AT)
_FAILED: Final = finish(_capture(True, "False", "NotInjected", "pod llama-0 was not injected"), _AT)
# object → what Argo CD says, and what Flux says with the expressions and by kstatus' rules alone
_OBJECTS: Final = [
    ("nothing is written yet", _object("ProfileRequest", 1, None), "Progressing", "Unknown", "Current"),
    (
        "suspended",
        _request({"facts": {"Succeeded": Fact("Unknown", "Suspended", "set spec.suspend to false to begin")}}),
        "Suspended",
        "InProgress",
        "InProgress",
    ),
    (
        "waits in the queue",
        _request(
            {"facts": {"Succeeded": Fact("Unknown", "Waiting", "place 1 in the namespace's queue")}, "queuePosition": 1}
        ),
        "Progressing",
        "InProgress",
        "InProgress",
    ),
    (
        "is captured",
        _request(_capture(False, "Unknown", "Capturing", "2 ranks")),
        "Progressing",
        "InProgress",
        "InProgress",
    ),
    (
        "ends, and the end is not written",
        _request(_capture(False, "True", "Complete", "2 of 2")),
        "Progressing",
        "InProgress",
        "InProgress",
    ),
    ("ended well", _request(_ENDED), "Healthy", "Current", "Current"),
    (
        "ended in part",
        _request(finish(_capture(True, "True", "PartiallyCaptured", "1 of 2 ranks"), _AT)),
        "Healthy",
        "Current",
        "Current",
    ),
    ("failed", _request(_FAILED), "Degraded", "Failed", "Failed"),
    (
        "was cancelled",
        _request(finish(_capture(True, "False", "Cancelled", "cancelled by the user"), _AT)),
        "Degraded",
        "Failed",
        "Failed",
    ),
    ("ended well, and was changed since", _request(_ENDED, generation=2), "Healthy", "InProgress", "InProgress"),
    ("failed, and was changed since", _request(_FAILED, generation=2), "Degraded", "InProgress", "InProgress"),
    (
        "ended, and the change was seen",
        _request(_ENDED, generation=2, observed=2),
        "Healthy",
        "Current",
        "Current",
    ),
    ("a new policy", _object("ProfilePolicy", 1, None), "Progressing", "Unknown", "Current"),
    ("a policy that watches", _policy(), "Healthy", "Current", "Current"),
    ("a policy that records only", _policy(mode="DryRun"), "Healthy", "Current", "Current"),
    ("a policy that cannot be", _policy(triggers=[{"name": "x", "type": "No"}]), "Degraded", "Failed", "Failed"),
]


@pytest.mark.parametrize(("document", "says"), [pytest.param(o[1], o[2], id=o[0]) for o in _OBJECTS])
def test_argo_cd_s_health_script(document: dict[str, Any], says: str) -> None:
    script = _read_snippet(f"resource.customizations.health.fleetprof.io_{document['kind']}")
    status, message = argo_cd.judge(script, document)
    assert status == says
    ready = [c["message"] for c in (document.get("status") or {}).get("conditions") or [] if c["type"] == "Ready"]
    assert message == (ready or ["not begun"])[0]


@pytest.mark.nightly
def test_flux_with_the_expressions_of_the_docs() -> None:
    expressions = {expression["kind"]: expression for expression in _read_snippet("healthCheckExprs")}
    assert set(expressions) == set(_KINDS)
    for kind in _KINDS:
        of_kind = [each for each in _OBJECTS if each[1]["kind"] == kind]
        says = flux.judge([document for _, document, *_ in of_kind], expressions[kind])
        assert dict(zip((each[0] for each in of_kind), says, strict=True)) == {each[0]: each[3] for each in of_kind}


@pytest.mark.nightly
def test_flux_by_kstatus_own_rules() -> None:
    says = flux.judge([document for _, document, *_ in _OBJECTS])
    assert dict(zip((each[0] for each in _OBJECTS), says, strict=True)) == {each[0]: each[4] for each in _OBJECTS}


@pytest.mark.nightly
@pytest.mark.cluster
def test_the_objects_of_the_docs_are_those_of_argo_cd_and_flux(api: ApiServer) -> None:
    (block,) = [block for block in _read_blocks("request.md") if "healthCheckExprs" in block]
    beside = {"interval": "1h", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "captures"}}
    kustomization = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "it"},
    }
    found = [kustomization | {"spec": beside | yaml.safe_load(block)["spec"]}]
    for block in _read_blocks("gitops.md"):
        if "kind: OCIRepository\n" in block or "kind: Application\n" in block:
            found += [
                each for each in yaml.safe_load_all(block) if each["kind"] != "HelmRelease"
            ]  # in no module to be had
    kinds = [document["kind"] for document in found]
    assert kinds == ["Kustomization", "OCIRepository", "Application"]
    install_kinds(api, *kinds)
    for document in found:
        document["metadata"]["namespace"] = "default"
        result = api.kubectl(
            "create", "--dry-run=server", "--validate=strict", "-f", "-", text=yaml.safe_dump(document)
        )
        assert result.returncode == 0, result.stderr
