"""Requests as the catalog has them: the list, and one."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, or_, select

from fleetprof_webui.catalog.clusters import count_clusters, is_of
from fleetprof_webui.catalog.filters import Conditions, contains, count_facets, permitted
from fleetprof_webui.catalog.keyset import SortOrder
from fleetprof_webui.catalog.schema import REQUEST_ORDERS, hosts, requests, workloads
from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.requests import RankCounts, Request, RequestFacets, RequestPage


@dataclass(frozen=True, slots=True)
class RequestQuery:
    """A person's query of the requests; "" is no condition. `host`: where one of its ranks ran."""

    cluster: str
    namespace: str
    state: str
    host: str
    text: str
    sort: str
    after: str
    limit: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One request, and what its report is known by."""

    request: Request
    report_version: str
    problem: str


_FROM = requests.join(workloads, requests.c.workload_id == workloads.c.id)
_COLUMNS = (*requests.c, workloads.c.kind.label("workload_kind"), workloads.c.name.label("workload_name"))


def find_requests(
    connection: Connection, query: RequestQuery, namespaces: Collection[str] | None, own_cluster: str
) -> RequestPage:
    """One page of requests, of a reader in `own_cluster`.

    Raises RequestRefused for a sort or a cursor that is not offered.
    """
    order = SortOrder.parse(query.sort, REQUEST_ORDERS)
    base, own = _conditions(query, namespaces, own_cluster)
    statement = select(*_COLUMNS).select_from(_FROM).where(*base.values(), *own.values())
    rows = connection.execute(order.page(statement, requests, query.after, query.limit)).all()
    shown = rows[: query.limit]
    facets = count_facets(connection, requests, {"namespace": "namespace", "state": "state"}, base, own)
    return RequestPage(
        items=[_request(row) for row in shown],
        facets=RequestFacets(cluster=count_clusters(connection, requests, own_cluster, base, own), **facets.values),
        total=facets.total,
        next=order.cursor(shown[-1], shown[-1].id) if len(rows) > query.limit else None,
    )


def find_request(connection: Connection, namespace: str, uid: str) -> Entry | None:
    """One request; None where the catalog has none."""
    where = (requests.c.namespace == namespace, requests.c.uid == uid)
    row = connection.execute(select(*_COLUMNS).select_from(_FROM).where(*where)).one_or_none()
    return None if row is None else Entry(_request(row), row.report_version, row.problem)


def _conditions(
    query: RequestQuery, namespaces: Collection[str] | None, own_cluster: str
) -> tuple[Conditions, Conditions]:
    """The conditions of no facet, and those of one, by its name."""
    base: dict[str, ColumnElement[bool]] = {}
    may = permitted(requests.c.namespace, namespaces)
    if may is not None:
        base["permitted"] = may
    if query.host:
        base["host"] = requests.c.id.in_(select(hosts.c.request_id).where(hosts.c.host_name == query.host))
    if query.text:
        of_workload = select(workloads.c.id).where(contains(query.text, workloads.c.name))
        base["text"] = or_(
            contains(query.text, requests.c.name, requests.c.uid), requests.c.workload_id.in_(of_workload)
        )
    own = {name: requests.c[name] == getattr(query, name) for name in ("namespace", "state") if getattr(query, name)}
    if query.cluster:
        own["cluster"] = is_of(requests.c.namespace, query.cluster, own_cluster)
    return base, own


def _request(row: Row[Any]) -> Request:
    return Request(
        namespace=row.namespace,
        uid=row.uid,
        name=row.name,
        kind=row.workload_kind,
        workload=row.workload_name,
        requester=row.requester,
        state=row.state,
        message=row.message,
        finished=row.finished,
        submitted_unix_ns=unix_ns(row.submitted_unix_ns),
        completed_unix_ns=unix_ns(row.completed_unix_ns),
        ranks=RankCounts(
            targeted=row.targeted, armed=row.armed, captured=row.captured, uploaded=row.uploaded, failed=row.failed
        ),
        has_report=row.has_report,
    )
