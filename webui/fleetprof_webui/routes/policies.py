"""ProfilePolicies: the list, and one with what it did."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.policies import PolicyDetail, PolicyPage
from fleetprof_webui.policies.reading import find_policy
from fleetprof_webui.problems import not_found
from fleetprof_webui.routes.parameters import Namespace
from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["policies"])


@router.get("/policies", **describes(PolicyPage))
def list_policies(service: CurrentService, viewer: CurrentViewer) -> Response:
    """ProfilePolicies of all namespaces that the person may read, with how often each fired, captured, suppressed."""
    return answer(service.catalog.policies(viewer.namespaces))


@router.get("/policies/{namespace}/{name}", **describes(PolicyDetail))
def show_policy(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    name: Annotated[str, Path(max_length=253)],
) -> Response:
    """One ProfilePolicy: its spec, what fired, what was captured, what was suppressed and why."""
    viewer.check_namespace(namespace, "policy")
    found = find_policy(service.store, namespace, name)
    if found is None:
        raise not_found("policy", "see what there is: /policies")
    return answer(found)
