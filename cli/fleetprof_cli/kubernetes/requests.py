"""Captures as ProfileRequests on Kubernetes: made, watched and taken back with the user's own rights.

Guarantees: nothing is ever deleted: a request whose capture is taken back stays, with its ledger, and says so; one that
was made anew under the same name is not taken for the old one.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_operator.profilerequests.records import CANCEL_ANNOTATION

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import Connection, explain_refusals, requests_path
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.capture_view import CaptureView

LATEST = "latest"


class Requests:
    """The ProfileRequests of one namespace."""

    whereabouts = "the operator"
    server = "the API server"

    def __init__(self, connection: Connection) -> None:
        self._cluster = connection.cluster
        self._connection = connection

    async def create(self, document: Mapping[str, Any]) -> RequestState:
        """A new request. Raises Failure."""
        with explain_refusals(self._connection.namespace):
            return RequestState(await self._cluster.create(self._connection.requests_path(), dict(document)))

    async def find(self, reference: str) -> RequestState:
        """The one of this name, or the latest of the namespace. Raises Failure."""
        if reference == LATEST:
            found = await self.list()
            if not found:
                raise Failure(
                    f"there is no ProfileRequest in namespace {self._connection.namespace}",
                    next_step=f"take a capture: kubectl fleetprof capture job/NAME -n {self._connection.namespace}",
                    code=ExitCode.REFUSED,
                )
            return found[0]
        with explain_refusals(self._connection.namespace):
            return RequestState(await self._cluster.get(self._connection.requests_path(reference)))

    async def list(self, *, everywhere: bool = False) -> list[RequestState]:
        """All of the namespace, or of all namespaces, the latest first. Raises Failure."""
        path = requests_path("") if everywhere else self._connection.requests_path()
        with explain_refusals(self._connection.namespace):
            items, _ = await self._cluster.list(path)
        states = [RequestState(item) for item in items]
        return sorted(states, key=lambda s: (str(s.created() or ""), s.name), reverse=True)

    async def watch(self, state: RequestState) -> AsyncIterator[RequestState]:
        """Every change until the request is finished or gone, or the API server ends the watch."""
        path, fields = self._connection.requests_path(), {"fieldSelector": f"metadata.name={state.name}"}
        with explain_refusals(self._connection.namespace):
            items, version = await self._cluster.list(path, fields)
            latest = self._of(state, items[0] if items else None)
            yield latest
            if latest.finished:
                return
            try:
                async for kind, item in self._cluster.watch(path, fields, version):
                    if kind == "BOOKMARK":
                        continue
                    latest = self._of(latest, None if kind == "DELETED" else item)
                    yield latest
                    if latest.finished:
                        return
            except ApiRefused as error:
                if error.status != 410:  # the watch fell too far behind; the caller begins anew
                    raise

    async def cancel(self, state: RequestState) -> None:
        """Asks the operator to end it. The uid is a condition: another request may have the name by now."""
        change = {"metadata": {"uid": state.uid, "annotations": {CANCEL_ANNOTATION: "true"}}}
        with explain_refusals(self._connection.namespace):
            try:
                await self._cluster.merge(self._connection.requests_path(state.name), change)
            except ApiRefused as error:
                if error.status not in (404, 409):  # it is gone, or another one has its name
                    raise

    def view(self, state: RequestState) -> CaptureView:
        """The request as the progress display shows it."""
        return state.view()

    def _of(self, known: RequestState, item: Mapping[str, Any] | None) -> RequestState:
        """The state that an item shows; the last known one, gone, when it is another request's."""
        if item is None or item["metadata"]["uid"] != known.uid:
            return RequestState(known.document, is_deleted=True)
        return RequestState(item)
