"""The fleet's list over a catalog of 100,000 reports, in SQLite and in PostgreSQL, as many readers ask for it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from pathlib import Path
from typing import Any, Final

from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.slices.head import make_head
from fleetprof_api.slices.table import SLICES
from fleetprof_webui.catalog.database import open_database
from fleetprof_webui.catalog.records import report_rows
from fleetprof_webui.catalog.schema import hosts, labels, reports, requests, workloads
from sqlalchemy import insert
from ui.captures import SMALL
from ui.service import RunningService

REPORTS: Final = 100_000
WORKLOADS: Final = 5_000
READERS: Final = 50
ASKS: Final = 20
PAUSE_S: Final = 2.0
_NAMESPACES: Final = 40
_CHUNK: Final = 5_000
QUERIES: Final = (
    "/fleet",
    "/fleet?sort=-gain",
    "/fleet?sort=busy&namespace=team-7",
    "/fleet?text=llama-12",
    "/fleet?finding=straggler&sort=-exposed",
    "/fleet?gpu=H100&kind=Job&sort=name",
    "/fleet?label=queue%3Dq-7&sort=-busy",
)


def fill_catalog(url: str) -> None:
    """Writes 100,000 reports of 5,000 workloads, 20 of each, into an empty catalog."""
    row = report_rows(make_head(analyze_directory(SMALL), SLICES["head"].most_rows))
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(insert(workloads), [_workload(number) for number in range(1, WORKLOADS + 1)])
        connection.execute(insert(labels), [each for number in range(1, WORKLOADS + 1) for each in _labels(number)])
    for first in range(1, REPORTS + 1, _CHUNK):
        numbers = range(first, first + _CHUNK)
        with engine.begin() as connection:
            connection.execute(insert(requests), [_request(number) for number in numbers])
            varied = [row.report | _varied(number) | {"request_id": number} for number in numbers]
            connection.execute(insert(reports), varied)
            if row.hosts:
                named = [{"request_id": number, "host_name": name} for number in numbers for name in row.hosts]
                connection.execute(insert(hosts), named)
    # What autovacuum does within a minute.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE" if engine.dialect.name == "sqlite" else "VACUUM ANALYZE")
    engine.dispose()


def _workload_of(number: int) -> int:
    return 1 + (number - 1) % WORKLOADS


def _place(workload: int) -> dict[str, Any]:
    name = f"{('llama', 'bert', 'gpt', 'vit')[workload % 4]}-{workload}"
    return {
        "namespace": f"team-{workload % _NAMESPACES}",
        "kind": "Job" if workload % 3 else "PyTorchJob",
        "name": name,
    }


def _varied(number: int) -> dict[str, Any]:
    """Figures that differ between workloads, without chance."""
    turned = number * 2654435761 % 1000
    return {
        "gpu": ("H100", "A100", "H200")[number % 3],
        "top_finding": ("straggler", "exposed_communication", "idle_device")[turned % 3],
        "busy_permille": turned,
        "exposed_communication_permille": 1000 - turned,
        "iteration_ns": 50_000_000 + turned * 100_000,
        "power_mw": 300_000 + turned,
        "rank_samples_per_ks": 1_000_000 + turned,
        "model_utilization_permille": turned // 2,
        "gain_permille": turned // 4,
    }


def _workload(number: int) -> dict[str, Any]:
    last = number + REPORTS - WORKLOADS
    known = {"id": number, "captures": REPORTS // WORKLOADS, "last_request_id": last, "last_unix_ns": last * 10**9}
    return known | _place(number) | {"rank_count": 4} | _varied(last)


def _labels(number: int) -> list[dict[str, Any]]:
    """Four each: of all, of a team, of a tenth, of this one."""
    texts = ("tier=train", f"team=team-{number % _NAMESPACES}", f"queue=q-{number % 10}", f"app=job-{number}")
    return [{"workload_id": number, "label": text} for text in texts]


def _request(number: int) -> dict[str, Any]:
    at = number * 10**9
    counts = dict.fromkeys(("targeted", "armed", "captured", "uploaded"), 4)
    texts = dict.fromkeys(("requester", "message", "problem", "report_version"), "")
    return counts | texts | {
        "id": number,
        "namespace": _place(_workload_of(number))["namespace"],
        "uid": f"uid-{number}",
        "workload_id": _workload_of(number),
        "version": str(number),
        "name": f"capture-{number}",
        "state": "Complete",
        "finished": True,
        "submitted_unix_ns": at,
        "completed_unix_ns": at + 10**9,
        "failed": 0,
        "has_report": True,
    }  # fmt: skip


def sign_in(running: RunningService) -> str:
    """The cookie of a session, which all readers share."""
    host = f"127.0.0.1:{running.port}"
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"Origin": f"http://{host}", "X-Fleetprof-Request": "1", "Content-Type": "application/json"}
    connection.request("POST", "/session", json.dumps({"token": running.token}), headers)
    cookie = connection.getresponse().headers["Set-Cookie"].partition(";")[0]
    connection.close()
    return cookie


def read_alone(running: RunningService, cookie: str) -> list[float]:
    """Seconds of each answer for one reader who asks at once again."""
    took: list[float] = []
    _read(running, cookie, 0, 0.0, ASKS * len(QUERIES), took)
    return took


def read_together(running: RunningService, cookie: str, pause_s: float) -> tuple[list[float], float]:
    """Seconds of each answer for READERS at once, who rest between, and how long it took in all."""
    took: list[float] = []
    threads = [
        threading.Thread(target=_read, args=(running, cookie, number, pause_s, ASKS, took)) for number in range(READERS)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(took) != READERS * ASKS:
        raise SystemExit(f"{len(took)} answers of {READERS * ASKS} came")
    return took, time.perf_counter() - began


def _read(running: RunningService, cookie: str, number: int, pause_s: float, asks: int, took: list[float]) -> None:
    connection = http.client.HTTPConnection(f"127.0.0.1:{running.port}", timeout=60)
    time.sleep(pause_s * number / READERS)
    for ask in range(asks):
        began = time.perf_counter()
        query = QUERIES[(number + ask) % len(QUERIES)]
        connection.request("GET", query, headers={"Cookie": cookie, "Accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or b'"items":[{' not in body:
            raise SystemExit(f"{query}: {answer.status} {body[:200]!r}")
        took.append(time.perf_counter() - began)
        time.sleep(pause_s)
    connection.close()


def sqlite_path(folder: Path) -> Path:
    """The place of the catalog."""
    return folder / "fleet.sqlite"
