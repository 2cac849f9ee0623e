"""The losses of jobs: gain of the first finding × GPUs × hours of the last day; what is not known stays so."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.report.report import read_report
from fleetprof_api.telemetry.history import POINTS, STEP_NS, NamespaceDay, WorkloadDay, write_day
from fleetprof_webui.catalog import losses
from fleetprof_webui.telemetry import jobs
from harness.memory_store import MemoryStore
from webui.conftest import Site, put_capture


def put_day(store: MemoryStore, namespace: str, *workloads: WorkloadDay) -> None:
    end = (time.time_ns() // STEP_NS + 1) * STEP_NS
    store.put(keys.telemetry_day_key(namespace), write_day(NamespaceDay(end, list(workloads))))


def find_rows(site: Site) -> dict[str, Any]:
    return {row["name"]: row for row in site.client.get("/losses").json()["items"]}


def test_a_loss_is_gain_times_gpus_times_hours(make_site: Callable[..., Site], store: MemoryStore) -> None:
    # Ten steps of five minutes, two of which told nothing; 500 W a GPU.
    rates: list[float | None] = [*[1.0] * 6, None, 0.0, *[1.0] * 6]
    values: dict[str, list[float | None]] = {"iterations_per_second": rates, "gpu_power_watts": [500.0]}
    put_day(store, "team-a", WorkloadDay("Job", "llama", values), WorkloadDay("Job", "never=captured", values))
    site = make_site()
    site.sign_in()
    rows = find_rows(site)
    llama, never = rows["llama"], rows["never=captured"]
    report = read_report(store.get(keys.report_key("team-a", llama["report"])))
    gain = report.findings[0].gain_permille if report.findings else 0
    assert (llama["gpus"], llama["hours"], llama["gpu_hours"], llama["gain_permille"]) == (4, 1.0, 4.0, gain)
    assert llama["lost_gpu_hours"] == pytest.approx(4 * gain / 1000)
    assert llama["lost_kwh"] == pytest.approx(4 * gain / 1000 * 0.5)
    assert llama["labels"] == ["team=vision"]
    assert (never["report"], never["hours"], never["gpus"], never["lost_gpu_hours"]) == (None, 1.0, None, None)


def test_hours_are_those_of_the_steps_that_were_told(make_site: Callable[..., Site], store: MemoryStore) -> None:
    rates: list[float | None] = [None] * POINTS
    rates[100] = 1.0
    put_day(store, "team-a", WorkloadDay("Job", "llama", {"iterations_per_second": rates}))
    site = make_site()
    site.sign_in()
    assert find_rows(site)["llama"]["hours"] == pytest.approx(1 / 12)


def test_a_job_that_told_its_pace_is_there_however_many_were_captured_or_told_more_since(
    make_site: Callable[..., Site], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "MOST", 1)
    monkeypatch.setattr(jobs, "MOST_JOBS", 1)
    busy: dict[str, list[float | None]] = {"iterations_per_second": [1.0] * 12, "gpu_busy_ratio": [0.9]}
    put_day(store, "team-a", WorkloadDay("Job", "llama", busy), WorkloadDay("Job", "idle", {"gpu_busy_ratio": [0.0]}))
    put_capture(store, "team-a", "late", "gpu_healthy", at=10**6, name="latest")
    site = make_site()
    site.sign_in()
    page = site.client.get("/losses").json()
    fleet = site.client.get("/fleet").json()["total"]
    assert [(row["name"], row["hours"], row["gpus"]) for row in page["items"]] == [("llama", 1.0, 4)]
    assert page["total"] == fleet + 1


def test_of_a_job_that_told_nothing_no_loss_is_known(make_site: Callable[..., Site]) -> None:
    site = make_site()
    site.sign_in()
    row = find_rows(site)["llama"]
    assert (row["gpus"], row["hours"], row["lost_gpu_hours"], row["lost_kwh"]) == (4, None, None, None)


def test_a_spreadsheet_runs_no_name_as_a_formula(make_site: Callable[..., Site], store: MemoryStore) -> None:
    put_day(store, "team-a", WorkloadDay("Job", "=HYPERLINK(1)", {"iterations_per_second": [1.0]}))
    site = make_site()
    site.sign_in()
    answer = site.client.get("/losses.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    header, *lines = answer.text.splitlines()
    assert header.startswith("namespace,kind,name,labels,report,gpus,hours,")
    assert any(line.startswith("team-a,Job,'=HYPERLINK(1),") for line in lines)
