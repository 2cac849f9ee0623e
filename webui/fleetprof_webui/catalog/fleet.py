"""The fleet as the catalog has it: workloads, and the captures of one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, exists, func, select

from fleetprof_webui.catalog.clusters import count_clusters, is_of
from fleetprof_webui.catalog.figures import known, read_figures
from fleetprof_webui.catalog.filters import Conditions, ManyValued, contains, count_facets, permitted
from fleetprof_webui.catalog.keyset import SortOrder
from fleetprof_webui.catalog.schema import FLEET_FACETS, FLEET_ORDERS, labels, reports, requests, workloads
from fleetprof_webui.models.fleet import Capture, FleetFacets, FleetPage, Point, Workload, WorkloadPage
from fleetprof_webui.models.model import unix_ns

_HISTORY: Final = 16
_LABELS: Final = ManyValued("label", labels.c.workload_id, labels.c.label)
_OF_REPORT: Final = [column.label(f"report_{column.name}") for column in reports.c]


@dataclass(frozen=True, slots=True)
class FleetQuery:
    """A person's query of the fleet; "" is no condition.

    `finding`: the kind of the first one of its last report. `label`: `key=value` of its pods.
    """

    cluster: str
    namespace: str
    kind: str
    gpu: str
    finding: str
    label: str
    text: str
    sort: str
    after: str
    limit: int


def find_fleet(
    connection: Connection, query: FleetQuery, namespaces: Collection[str] | None, own_cluster: str
) -> FleetPage:
    """One page of workloads, of a reader in `own_cluster`.

    Raises RequestRefused for a sort or a cursor that is not offered.
    """
    order = SortOrder.parse(query.sort, FLEET_ORDERS)
    base, own = _conditions(query, namespaces, own_cluster)
    statement = order.page(select(workloads).where(*base.values(), *own.values()), workloads, query.after, query.limit)
    rows = connection.execute(statement).all()
    shown = rows[: query.limit]
    captures = _find_captures(connection, [row.last_request_id for row in shown])
    history = _find_history(connection, [row.id for row in shown])
    facets = count_facets(connection, workloads, FLEET_FACETS, base, own, _LABELS)
    return FleetPage(
        items=[
            Workload(
                namespace=row.namespace,
                kind=row.kind,
                name=row.name,
                captures=row.captures,
                last=captures[row.last_request_id],
                history=history.get(row.id, []),
            )
            for row in shown
            if row.last_request_id in captures  # else it went between two statements
        ],
        facets=FleetFacets(cluster=count_clusters(connection, workloads, own_cluster, base, own), **facets.values),
        total=facets.total,
        next=order.cursor(shown[-1], shown[-1].id) if len(rows) > query.limit else None,
    )


def find_workload(
    connection: Connection, namespace: str, kind: str, name: str, *, after: str, limit: int
) -> WorkloadPage | None:
    """One workload's captures, the latest first; None where it is not there."""
    where = (workloads.c.namespace == namespace, workloads.c.kind == kind, workloads.c.name == name)
    workload_id = connection.execute(select(workloads.c.id).where(*where)).scalar_one_or_none()
    if workload_id is None:
        return None
    order = SortOrder.parse("-submitted", {"submitted": "submitted_unix_ns"})
    statement = order.page(_captures().where(requests.c.workload_id == workload_id), requests, after, limit)
    rows = connection.execute(statement).all()
    shown = rows[:limit]
    return WorkloadPage(
        namespace=namespace,
        kind=kind,
        name=name,
        items=[_capture(row) for row in shown],
        next=order.cursor(shown[-1], shown[-1].id) if len(rows) > limit else None,
    )


def _conditions(
    query: FleetQuery, namespaces: Collection[str] | None, own_cluster: str
) -> tuple[Conditions, Conditions]:
    """The conditions of no facet, and those of one, by its name."""
    base: dict[str, ColumnElement[bool]] = {}
    may = permitted(workloads.c.namespace, namespaces)
    if may is not None:
        base["permitted"] = may
    if query.text:
        base["text"] = contains(query.text, workloads.c.name, workloads.c.namespace, workloads.c.kind)
    own = {
        name: workloads.c[column] == getattr(query, name)
        for name, column in FLEET_FACETS.items()
        if getattr(query, name)
    }
    if query.cluster:
        own["cluster"] = is_of(workloads.c.namespace, query.cluster, own_cluster)
    if query.label:
        own["label"] = exists().where(labels.c.workload_id == workloads.c.id, labels.c.label == query.label)
    return base, own


def _captures() -> Any:
    return select(requests, *_OF_REPORT).select_from(requests.outerjoin(reports))


def _find_captures(connection: Connection, ids: Sequence[int]) -> dict[int, Capture]:
    rows = connection.execute(_captures().where(requests.c.id.in_(ids)))
    return {row.id: _capture(row) for row in rows}


def _find_history(connection: Connection, ids: Sequence[int]) -> dict[int, list[Point]]:
    """The last reports of each of these workloads, the oldest first."""
    number = func.row_number().over(
        partition_by=requests.c.workload_id, order_by=(requests.c.submitted_unix_ns.desc(), requests.c.id.desc())
    )
    numbered = (
        select(
            requests.c.workload_id,
            requests.c.uid,
            requests.c.submitted_unix_ns,
            reports.c.iteration_ns,
            reports.c.busy_permille,
            number.label("number"),
        )
        .select_from(requests.join(reports))
        .where(requests.c.workload_id.in_(ids))
        .subquery()
    )
    found: dict[int, list[Point]] = {}
    statement = select(numbered).where(numbered.c.number <= _HISTORY).order_by(numbered.c.number.desc())
    for row in connection.execute(statement):
        point = Point(
            uid=row.uid,
            submitted_unix_ns=unix_ns(row.submitted_unix_ns),
            iteration_ns=known(row.iteration_ns),
            busy_permille=known(row.busy_permille),
        )
        found.setdefault(row.workload_id, []).append(point)
    return found


def _capture(row: Row[Any]) -> Capture:
    return Capture(
        namespace=row.namespace,
        uid=row.uid,
        name=row.name,
        state=row.state,
        finished=row.finished,
        submitted_unix_ns=unix_ns(row.submitted_unix_ns),
        has_report=row.has_report,
        problem=row.problem,
        figures=read_figures(row) if row.report_request_id is not None else None,
    )
