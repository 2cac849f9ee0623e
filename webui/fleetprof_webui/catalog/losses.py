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
from fleetprof_webui.models.telemetry import JobOfDay

MOST: Final = 1000
_MOST_LABELS: Final = 16
_HOUR_NS: Final = 3600 * 10**9

JobKey = tuple[str, str, str]


def find_losses(connection: Connection, jobs: Sequence[JobOfDay], namespaces: Collection[str] | None) -> LossPage:
    """The captured jobs of these namespaces (None: of all), and those that only told anything in the last day."""
    by_key: dict[JobKey, JobOfDay] = {(job.namespace, job.kind, job.name): job for job in jobs}
    captured = _find_captured(connection, namespaces)
    labelled = _find_labels(connection, [row.id for row in captured.values()])
    rows = [_describe(key, row, by_key.get(key), labelled.get(row.id, [])) for key, row in captured.items()]
    rows += [_describe(key, None, job, []) for key, job in by_key.items() if key not in captured]
    rows.sort(
        key=lambda row: (-1.0 if row.lost_gpu_hours is None else row.lost_gpu_hours, row.gpu_hours or 0.0), reverse=True
    )
    keys = sorted({label.partition("=")[0] for row in rows for label in row.labels})
    return LossPage(items=rows[:MOST], total=len(rows), label_keys=keys)


def count_hours(job: JobOfDay | None) -> float | None:
    """The hours of the last day in which a job told its pace."""
    if job is None:
        return None
    steps = sum(rate is not None and rate > 0 for rate in job.rates)
    return steps * job.step_ns / _HOUR_NS if steps else None


def _find_captured(connection: Connection, namespaces: Collection[str] | None) -> Mapping[JobKey, Row[Any]]:
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
        .limit(MOST)
    )
    may = permitted(workloads.c.namespace, namespaces)
    rows = connection.execute(statement if may is None else statement.where(may))
    return {(row.namespace, row.kind, row.name): row for row in rows}


def _find_labels(connection: Connection, ids: Sequence[int]) -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = {}
    chosen = select(labels).where(labels.c.workload_id.in_(ids)).order_by(labels.c.workload_id, labels.c.label)
    for row in connection.execute(chosen):
        found.setdefault(row.workload_id, []).append(row.label)
    return {key: each[:_MOST_LABELS] for key, each in found.items()}


def _describe(key: JobKey, row: Row[Any] | None, job: JobOfDay | None, of_pods: list[str]) -> LossRow:
    namespace, kind, name = key
    has_report = row is not None and row.request_id is not None
    gpus = row.rank_count if has_report and row is not None and row.measured == "gpu" else None
    gain = (row.top_finding_permille or 0) if gpus is not None and row is not None else None
    hours = count_hours(job)
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
