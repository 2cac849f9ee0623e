"""The cost of the first finding of each job's last report in the last day, in GPU-hours and energy.

Guarantees: hours are those in which the job told its pace, never those that it may have run; a figure of which a factor
is not known is not known; a gain is the report's point, which has no interval of its own.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from fleetprof_webui.catalog.figures import known
from fleetprof_webui.catalog.filters import permitted
from fleetprof_webui.catalog.schema import labels, reports, requests, workloads
from fleetprof_webui.models.losses import LossPage, LossRow
from fleetprof_webui.telemetry.jobs import TimedJob

MOST: Final = 1000
_MOST_LABELS: Final = 16

JobKey = tuple[str, str, str]


def find_losses(connection: Connection, jobs: Sequence[TimedJob], namespaces: Collection[str] | None) -> LossPage:
    """The captured jobs of these namespaces (None: of all), and those that only told anything in the last day."""
    by_key: dict[JobKey, TimedJob] = {(one.job.namespace, one.job.kind, one.job.name): one for one in jobs}
    captured, left_out = _find_captured(connection, namespaces, by_key.keys())
    labelled = _find_labels(connection, [row.id for row in captured.values()])
    rows = [_describe(key, row, by_key.get(key), labelled.get(row.id, [])) for key, row in captured.items()]
    rows += [_describe(key, None, job, []) for key, job in by_key.items() if key not in captured]
    rows.sort(
        key=lambda row: (-1.0 if row.lost_gpu_hours is None else row.lost_gpu_hours, row.gpu_hours or 0.0), reverse=True
    )
    keys = sorted({label.partition("=")[0] for row in rows for label in row.labels})
    return LossPage(items=rows[:MOST], total=len(rows) + left_out, label_keys=keys)


def _find_captured(
    connection: Connection, namespaces: Collection[str] | None, of_day: Collection[JobKey]
) -> tuple[Mapping[JobKey, Row[Any]], int]:
    """The jobs of the day, whose losses may be known, and the latest others; and the number of those left out."""
    statement: Any = (
        select(
            workloads.c.id,
            workloads.c.namespace,
            workloads.c.kind,
            workloads.c.name,
            requests.c.uid,
            reports.c.request_id,
            reports.c.kind.label("measured"),
            reports.c.rank_count,
            reports.c.power_mw,
            reports.c.top_finding,
            reports.c.top_finding_permille,
        )
        .select_from(
            workloads.join(requests, requests.c.id == workloads.c.last_request_id).outerjoin(
                reports, reports.c.request_id == requests.c.id
            )
        )
        .order_by(workloads.c.last_unix_ns.desc())
    )
    may = permitted(workloads.c.namespace, namespaces)
    found: dict[JobKey, Row[Any]] = {}
    left_out = 0
    for row in connection.execute(statement if may is None else statement.where(may)):
        key = (row.namespace, row.kind, row.name)
        if key in of_day or len(found) < MOST:
            found[key] = row
        else:
            left_out += 1
    return found, left_out


def _find_labels(connection: Connection, ids: Sequence[int]) -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = {}
    chosen = select(labels).where(labels.c.workload_id.in_(ids)).order_by(labels.c.workload_id, labels.c.label)
    for row in connection.execute(chosen):
        found.setdefault(row.workload_id, []).append(row.label)
    return {key: each[:_MOST_LABELS] for key, each in found.items()}


def _describe(key: JobKey, row: Row[Any] | None, timed: TimedJob | None, of_pods: list[str]) -> LossRow:
    namespace, kind, name = key
    has_report = row is not None and row.request_id is not None
    gpus = row.rank_count if has_report and row is not None and row.measured == "gpu" else None
    gain = (row.top_finding_permille or 0) if gpus is not None and row is not None else None
    job, hours = (None, None) if timed is None else timed
    gpu_hours = None if gpus is None or hours is None else gpus * hours
    lost = None if gpu_hours is None or gain is None else gpu_hours * gain / 1000
    in_report = known(row.power_mw) if has_report and row is not None else None
    watts = job.power_watts if job is not None and job.power_watts is not None else None
    if watts is None and in_report is not None:
        watts = in_report / 1000
    return LossRow(
        namespace=namespace,
        kind=kind,
        name=name,
        labels=of_pods,
        report=row.uid if has_report and row is not None else None,
        gpus=gpus,
        hours=hours,
        gpu_hours=gpu_hours,
        finding=(row.top_finding or "") if row is not None else "",
        gain_permille=gain,
        lost_gpu_hours=lost,
        lost_kwh=None if lost is None or watts is None else lost * watts / 1000,
    )
