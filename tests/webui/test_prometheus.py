"""Last days and the list of jobs as a real Prometheus has them, and what is shown when it has none or fails."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.telemetry.history import POINTS, STEP_NS, NamespaceDay, WorkloadDay, write_day
from fleetprof_webui.telemetry.prometheus import (
    Prometheus,
    PrometheusFailed,
    PrometheusSettings,
    check_matchers,
    make_query,
)
from harness.http_answers import answering
from harness.memory_store import MemoryStore
from harness.prometheus import find_program, run_prometheus
from webui.conftest import Site

STEP_S = STEP_NS // 10**9
_ENDED = 'namespace="team-b",kind="Job",workload="ended",cluster="a"'
ENDED_RANKS = f"fleetprof_workload_ranks{{{_ENDED}}}"
ENDED_RATE = f'fleetprof_workload_iterations_per_second{{aggregation="mean",{_ENDED}}}'
HOSTILE = 'a"} or vector(1) or x{b="'


def expose(end_s: int) -> str:
    """OpenMetrics of the last hour, each minute: two operators one after the other, and what is none of the job's."""
    rows: dict[str, list[str]] = {
        measure: [] for measure in ("gpu_busy_ratio", "iteration_seconds", "iterations_per_second", "ranks")
    }

    def add(measure: str, labels: str, at_s: int, value: float) -> None:
        rows[measure].append(f'fleetprof_workload_{measure}{{namespace="team-a",kind="Job",{labels}}} {value} {at_s}')

    for at_s in range(end_s - 3600, end_s - 60, 60):
        first = at_s < end_s - 1800
        mine = f'workload="llama",cluster="a",instance="operator-{0 if first else 1}"'
        add("gpu_busy_ratio", f'aggregation="mean",{mine}', at_s, 0.5 if first else 0.7)
        add("gpu_busy_ratio", f'aggregation="max",{mine}', at_s, 1.0)
        if first:
            rows["ranks"].append(f"{ENDED_RANKS} 2 {at_s}")
            rows["iterations_per_second"].append(f"{ENDED_RATE} 4 {at_s}")
        add("gpu_busy_ratio", 'aggregation="mean",workload="llama",cluster="b"', at_s, 0.1)
        add("gpu_busy_ratio", 'aggregation="mean",workload="bert",cluster="a"', at_s, 0.2)
        if not first:
            add("iteration_seconds", f'aggregation="mean",{mine}', at_s, 0.25)
    text = [f"# TYPE fleetprof_workload_{measure} gauge\n" + "\n".join(found) for measure, found in rows.items()]
    return "\n".join(text) + "\n# EOF\n"


@pytest.fixture(scope="module")
def end_s() -> int:
    return (int(time.time()) // STEP_S + 1) * STEP_S


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, end_s: int) -> Iterator[str]:
    """A Prometheus that has scraped for an hour."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "metrics.txt").write_text(expose(end_s))
    blocks = [find_program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "metrics.txt", "prometheus"]
    subprocess.run(blocks, cwd=folder, check=True, capture_output=True)
    with run_prometheus(folder, {}, []) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def asking(address: str, clock: Callable[[], float] = time.monotonic, **settings: Any) -> Iterator[Prometheus]:
    prometheus = Prometheus(PrometheusSettings(address, **settings), clock)
    try:
        yield prometheus
    finally:
        prometheus.close()


@pytest.mark.prometheus
def test_points_of_a_workload_over_the_restart_of_an_operator(address: str, end_s: int) -> None:
    with asking(address, matchers='cluster="a"') as prometheus:
        found = prometheus.find_day("team-a", "Job", "llama", end_s * 10**9)
        assert found.keys() == {"gpu_busy_ratio", "iteration_seconds"}
        busy, seconds = found["gpu_busy_ratio"], found["iteration_seconds"]
        assert len(busy) == POINTS
        assert busy[:-14] == [None] * (POINTS - 14)
        assert [round(point or 0, 6) for point in busy[-11:-7]] == [0.5] * 4
        assert [round(point or 0, 6) for point in busy[-4:]] == [0.7] * 4
        assert (seconds[-10], seconds[-2]) == (None, 0.25)
        assert prometheus.find_day("team-a", "", "bert", end_s * 10**9).keys() == {"gpu_busy_ratio"}
        for namespace, kind, name in (
            ("team-b", "Job", "llama"),
            ("team-a", "Pod", "llama"),
            ("team-a", "Job", HOSTILE),
        ):
            assert prometheus.find_day(namespace, kind, name, end_s * 10**9) == {}


@pytest.mark.prometheus
def test_a_page_shows_prometheus_day_before_the_stores(
    make_site: Callable[..., Site], store: MemoryStore, address: str
) -> None:
    stored = [WorkloadDay("Job", name, {"gpu_busy_ratio": [0.9]}) for name in ("llama", "gpt")]
    store.put(keys.telemetry_day_key("team-a"), write_day(NamespaceDay(STEP_NS, stored)))
    with asking(address, matchers='cluster="a"') as prometheus:
        site = make_site(prometheus=prometheus)
        site.sign_in()
        kept = {name: site.client.get(f"/telemetry/team-a/Job/{name}").json() for name in ("llama", "gpt", "none")}
    assert {name: day["source"] for name, day in kept.items()} == {
        "llama": "prometheus",
        "gpt": "store",
        "none": "store",
    }
    assert [one["measure"] for one in kept["llama"]["series"]] == ["iteration_seconds", "gpu_busy_ratio"]
    assert kept["gpt"]["series"][0]["values"] == [0.9]


@pytest.mark.prometheus
def test_the_list_of_jobs_is_prometheus_before_the_stores(
    make_site: Callable[..., Site], store: MemoryStore, address: str, end_s: int
) -> None:
    stored = [WorkloadDay("Job", name, {"gpu_busy_ratio": [0.9]}) for name in ("llama", "gpt")]
    store.put(keys.telemetry_day_key("team-a"), write_day(NamespaceDay(end_s * 10**9, stored)))
    with asking(address, matchers='cluster="a"') as prometheus:
        site = make_site(prometheus=prometheus)
        site.sign_in()
        jobs = {job["name"]: job for job in site.client.get("/telemetry").json()["items"]}
        assert site.client.get("/fleet/team-b/Job/ended").json()["items"] == [], "it has a page"
        readable = site.catalog.jobs.find({"team-a"}, {"team-a"})
    shown = {name: (job["namespace"], job["source"], job["running"], job["activity"]) for name, job in jobs.items()}
    assert shown == {
        "llama": ("team-a", "prometheus", True, pytest.approx(0.7)),
        "bert": ("team-a", "prometheus", True, pytest.approx(0.2)),
        "gpt": ("team-a", "store", True, 0.9),
        "ended": ("team-b", "prometheus", False, None),
    }
    assert (jobs["llama"]["captured"], jobs["llama"]["iteration_ns"]) == (True, 250_000_000)
    rates = jobs["ended"]["rates"]
    assert (len(rates), rates[:-3], rates[-2], rates[-1]) == (48, [None] * 45, 4, None)
    assert {job.name for job in readable.items} == {"llama", "bert", "gpt"}, "of others nobody is told"


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"query too long"}', "400: query too long"),
        (401, b"go away", "401, and nothing of Prometheus"),
        (200, b'{"status":"success","data":{"result":[{"metric":7}]}}', "200, and nothing of Prometheus"),
        (302, b"", "302, and nothing of Prometheus"),
        (200, b" " * ((4 << 20) + 1), "more than 4194304 bytes"),
    ],
)
def test_an_answer_that_is_none_is_said(status: int, body: bytes, problem: str) -> None:
    with (
        answering(status, body) as (address, _),
        asking(address) as prometheus,
        pytest.raises(PrometheusFailed, match=problem),
    ):
        prometheus.find_day("team-a", "Job", "llama", STEP_NS)


def test_one_that_was_too_slow_is_left_alone_for_a_while() -> None:
    class Clock:
        now_s = 0.0
        passes_s = 0.0

        def __call__(self) -> float:
            self.now_s += self.passes_s
            return self.now_s

    clock = Clock()

    def ask() -> str:
        with pytest.raises(PrometheusFailed) as failed:
            prometheus.find_day("team-a", "Job", "llama", STEP_NS)
        return str(failed.value)

    with answering(200, b"rubbish") as (address, authorizations), asking(address, clock) as prometheus:
        clock.passes_s = 11.0
        assert ask() == "it cannot be reached: no whole answer within 10 s"
        clock.passes_s = 0.0
        assert ask() == "it could not be reached, and is asked again in 30 s"
        assert len(authorizations) == 1
        clock.now_s += 30.0
        assert "nothing of Prometheus" in ask()
        assert "nothing of Prometheus" in ask(), "one that answers is asked again at once"
        assert len(authorizations) == 3


def test_without_an_answer_the_stores_day_is_shown(make_site: Callable[..., Site], store: MemoryStore) -> None:
    now_ns = time.time_ns() // STEP_NS * STEP_NS
    day = NamespaceDay(now_ns, [WorkloadDay("Job", "llama", {"gpu_busy_ratio": [0.9]})])
    store.put(keys.telemetry_day_key("team-a"), write_day(day))
    with asking("http://127.0.0.1:9") as prometheus:
        site = make_site(prometheus=prometheus)
        site.sign_in()
        shown = site.client.get("/telemetry/team-a/Job/llama").json()
        listed = site.client.get("/telemetry").json()["items"]
    assert (shown["source"], shown["series"][0]["values"]) == ("store", [0.9])
    assert [(job["name"], job["source"]) for job in listed] == [("llama", "store")]


def test_the_token_is_read_anew_for_each_question(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with (
        answering(200, b'{"status":"success"}') as (address, authorizations),
        asking(address, token_file=token) as prometheus,
    ):
        for text in ("one\n", "two\n"):
            token.write_text(text)
            assert prometheus.find_day("team-a", "Job", "llama", STEP_NS) == {}
    assert authorizations == ["Bearer one", "Bearer two"]


def test_names_stay_names_in_the_question() -> None:
    assert 'workload="a\\"} or vector(1) or x{b=\\""' in make_query("team-a", "Job", HOSTILE, 'cluster="a"')


@pytest.mark.parametrize("text", ["", 'cluster="a"', 'cluster=~"a|b", env!="test"', 'a="\\"}"'])
def test_matchers_are_taken(text: str) -> None:
    assert check_matchers(text) == text


@pytest.mark.parametrize("text", ["a", 'a="b"} or x{c="d"', 'a="b" c="d"', "a=b", '{a="b"}'])
def test_what_is_more_than_matchers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="matchers of PromQL"):
        check_matchers(text)
