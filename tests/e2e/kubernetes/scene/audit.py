"""The rights of an account, from its roles, and its deeds, from the API server's audit log."""

from pathlib import Path

from msgspec import json as msgspec_json

from scene.api import Api, Object

_RBAC = "rbac.authorization.k8s.io/v1"
# (API group, resource or resource/subresource, verb)
Right = tuple[str, str, str]


def granted_to(api: Api, namespace: str, account: str) -> set[Right]:
    """Every verb of every resource in the roles that are bound to a service account."""
    rights: set[Right] = set()
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in api.list(kind, api=_RBAC):
            if any(_is_account(each, namespace, account) for each in binding.get("subjects") or []):
                reference = binding["roleRef"]
                place = binding["metadata"].get("namespace") if reference["kind"] == "Role" else None
                role = api.get(reference["kind"], reference["name"], place, _RBAC)
                assert role is not None, reference
                rights |= _expand(role)
    return rights


def used_by(log: Path, begin: int, namespace: str, account: str) -> set[Right]:
    """Every verb of every resource that the account asked for and was allowed, from byte `begin` of the log on."""
    rights: set[Right] = set()
    user = f"system:serviceaccount:{namespace}:{account}"
    with log.open("rb") as file:
        file.seek(begin)
        for line in file:
            if user.encode() not in line:
                continue
            event: Object = msgspec_json.decode(line)
            allowed = (event.get("annotations") or {}).get("authorization.k8s.io/decision") == "allow"
            if event["user"]["username"] == user and allowed and "objectRef" in event:
                what = event["objectRef"]
                resource = "/".join(filter(None, (what["resource"], what.get("subresource", ""))))
                rights.add((what.get("apiGroup", ""), resource, event["verb"]))
    return rights


def _is_account(subject: Object, namespace: str, account: str) -> bool:
    return (subject["kind"], subject.get("namespace"), subject["name"]) == ("ServiceAccount", namespace, account)


def _expand(role: Object) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in role.get("rules") or []
        for group in rule.get("apiGroups") or []
        for resource in rule.get("resources") or []
        for verb in rule["verbs"]
    }
