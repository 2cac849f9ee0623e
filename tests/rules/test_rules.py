"""The chart's rules, in Prometheus's own tool: when each alert fires and when it does not; each has its runbook."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.kubernetes.chart import ROOT, S3, render
from harness.prometheus import find_program

pytestmark = [pytest.mark.helm, pytest.mark.prometheus]

PAGE = ROOT / "docs/alerts.md"
JOB = "fleetprof-system/fleetprof"
OF = 'namespace="team",workload="llama",kind="Job"'
MEAN = f'{{aggregation="mean",{OF}}}'
RUNS = {f"fleetprof_workload_start_timestamp_seconds{{{OF}}}": "0x400"}
YOUNG = {f"fleetprof_workload_start_timestamp_seconds{{{OF}}}": "6000x400"}
EXEMPT = {f"fleetprof_workload_exempt{{{OF}}}": "1x400"}
ALIVE = {"fleetprof_build_info": "1x400"}
WITHOUT_GPUS = {f"fleetprof_workload_gpus{{{OF}}}": "0x400"}
WITH_GPUS = {f"fleetprof_workload_gpus{{{OF}}}": "8x400"}
RATE = f"fleetprof_workload_iterations_per_second{MEAN}"
TIME = f"fleetprof_workload_iteration_seconds{MEAN}"
SM, BUSY = f"fleetprof_workload_gpu_sm_active_ratio{MEAN}", f"fleetprof_workload_gpu_busy_ratio{MEAN}"
SHARE = f'fleetprof_workload_lowest_rank_share{{measure="gpu_sm_active_ratio",{OF}}}'
THROTTLED = f'fleetprof_workload_gpu_throttled_ranks{{reason="thermal",{OF}}}'
LAST = f"fleetprof_workload_last_iteration_timestamp_seconds{{{OF}}}"
FAILED, DONE = 'fleetprof_ranks_finished_total{result="TooLate"}', 'fleetprof_ranks_finished_total{result="Uploaded"}'
NO_REPORT = 'fleetprof_requests_finished_total{reason="AnalysisFailed"}'
NO_ROOM, INJECTED = 'fleetprof_webhook_pods_total{result="NoRoom"}', 'fleetprof_webhook_pods_total{result="Injected"}'
OPEN = 'apiserver_admission_webhook_fail_open_count{name="pods.fleetprof.io"}'
REFUSED, BAD = 'fleetprof_hub_refusals_total{kind="OverBudget"}', 'fleetprof_hub_refusals_total{kind="BadToken"}'
NOT_STARTED = "fleetprof_pods_without_sidecar_total"
LOST = "fleetprof_policy_alerts_lost_total"
NOT_STORED, STORED = (f'fleetprof_telemetry_history_writes_total{{result="{r}"}}' for r in ("failed", "stored"))
LOOKED = "fleetprof_webui_catalog_looked_timestamp_seconds"
TENSOR = f"fleetprof_workload_gpu_tensor_active_ratio{MEAN}"
A, B = 'cluster="a",namespace="fleetprof-system"', 'cluster="b",namespace="fleetprof-system"'
SERVES_A, SERVES_B = (f'fleetprof_operator_serves{{pod="x",{of}}}' for of in (A, B))
STANDS_BY_A = f'fleetprof_operator_serves{{pod="y",{A}}}'
SIDECARS, REPORTING = "fleetprof_sidecars_connected", "fleetprof_telemetry_workloads"

# alert, what is scraped every minute, whether it fires after two hours, why
CASES: list[tuple[str, dict[str, str], bool, str]] = [
    ("FleetprofLowUtilization", RUNS | {SM: "0.2x120"}, True, "low for long"),
    ("FleetprofLowUtilization", RUNS | {BUSY: "0.2x120"}, True, "a device without counters of activity"),
    ("FleetprofLowUtilization", RUNS | {SM: "0.2x120", BUSY: "0.9x120"}, True, "activity counts"),
    ("FleetprofLowUtilization", RUNS | {SM: "0.9x120"}, False, "healthy"),
    ("FleetprofLowUtilization", RUNS | {SM: "0.9x110 0.2x10"}, False, "low for ten minutes: an evaluation"),
    ("FleetprofLowUtilization", RUNS | EXEMPT | {SM: "0.2x120"}, False, "exempt"),
    ("FleetprofLowUtilization", YOUNG | {SM: "0.2x120"}, False, "in its grace"),
    ("FleetprofLowUtilization", RUNS | {SM: "0.9x120", TENSOR: "0.01x120"}, False, "tensor cores are not looked at"),
    ("FleetprofLowUtilization", RUNS, False, "no figure is not a low one"),
    ("FleetprofIdleGpusHeld", RUNS | {SM: "0x120"}, True, "idle"),
    ("FleetprofIdleGpusHeld", RUNS | {SM: "0.05x120"}, False, "not idle"),
    ("FleetprofIdleGpusHeld", RUNS | EXEMPT | {SM: "0x120"}, False, "exempt"),
    ("FleetprofLowIterationRate", RUNS | WITHOUT_GPUS | {RATE: "10x60 1x60"}, True, "starved since an hour"),
    ("FleetprofLowIterationRate", RUNS | WITHOUT_GPUS | {RATE: "10x120"}, False, "as ever"),
    ("FleetprofLowIterationRate", RUNS | WITHOUT_GPUS | {RATE: "1x120"}, False, "its own best is as low"),
    ("FleetprofLowIterationRate", RUNS | WITH_GPUS | {RATE: "10x60 1x60"}, False, "has GPUs"),
    ("FleetprofLowIterationRate", RUNS | WITHOUT_GPUS | EXEMPT | {RATE: "10x60 1x60"}, False, "exempt"),
    ("FleetprofSlowRank", RUNS | {SHARE: "0.5x120"}, True, "behind"),
    ("FleetprofSlowRank", RUNS | {SHARE: "0.95x120"}, False, "as its peers"),
    ("FleetprofSlowRank", RUNS | EXEMPT | {SHARE: "0.5x120"}, False, "exempt"),
    ("FleetprofIterationTimeDrift", RUNS | {TIME: "1x60 1.4x60"}, True, "slower since an hour"),
    ("FleetprofIterationTimeDrift", RUNS | {TIME: "3x10 1x110"}, False, "a slow start"),
    ("FleetprofIterationTimeDrift", RUNS | {TIME: "1x60 1.1x60"}, False, "within the threshold"),
    ("FleetprofIterationTimeDrift", RUNS | EXEMPT | {TIME: "1x60 1.4x60"}, False, "exempt"),
    ("FleetprofJobStalled", RUNS | {LAST: "0+60x90 5400x30"}, True, "no iteration for half an hour"),
    ("FleetprofJobStalled", RUNS | {LAST: "0+60x120"}, False, "an iteration each minute"),
    ("FleetprofJobStalled", RUNS | {LAST: "0+60x117 7020x4"}, False, "three minutes"),
    ("FleetprofJobStalled", RUNS | {LAST: "0+60x50 3000x8 3600+60x40 6000x20"}, False, "paused half as long before"),
    ("FleetprofJobStalled", RUNS | EXEMPT | {LAST: "0+60x90 5400x30"}, False, "exempt"),
    ("FleetprofJobStalled", YOUNG | {LAST: "0+60x90 5400x30"}, False, "in its grace"),
    ("FleetprofGpuThrottled", RUNS | {THROTTLED: "2x120"}, True, "hot"),
    ("FleetprofGpuThrottled", RUNS | {THROTTLED: "0x120"}, False, "cool"),
    ("FleetprofOperatorDown", {}, True, "nothing is scraped"),
    ("FleetprofOperatorDown", ALIVE, False, "there"),
    ("FleetprofOperatorDown", {f"fleetprof_build_info{{{A}}}": "1x60", f"fleetprof_build_info{{{B}}}": "1x120"}, True,
     "another cluster's is there"),
    ("FleetprofOperatorDown", {f"fleetprof_build_info{{{A}}}": "1x120", f"fleetprof_build_info{{{B}}}": "1x120"}, False,
     "both are there"),
    ("FleetprofNobodyServes", {SERVES_A: "0x120", SERVES_B: "1x120"}, True, "another cluster's serves"),
    ("FleetprofNobodyServes", {SERVES_A: "1x120", STANDS_BY_A: "0x120"}, False, "one of two"),
    ("FleetprofTwoServe", {SERVES_A: "1x120", STANDS_BY_A: "1x120"}, True, "both replicas"),
    ("FleetprofTwoServe", {SERVES_A: "1x120", SERVES_B: "1x120", STANDS_BY_A: "0x120"}, False, "one of each cluster"),
    ("FleetprofOperatorStalls", {f"fleetprof_event_loop_lag_seconds{{{A}}}": "9x120"}, True, "no processor time"),
    ("FleetprofOperatorStalls", {f"fleetprof_lease_age_seconds{{{A}}}": "9x120"}, True, "the Lease is old"),
    ("FleetprofOperatorStalls", {f"fleetprof_requests_unanswered_seconds{{{A}}}": "0+60x120"}, True,
     "nothing is written"),
    ("FleetprofOperatorStalls", {f"fleetprof_event_loop_lag_seconds{{{A}}}": "0.1x120",
      f"fleetprof_lease_age_seconds{{{A}}}": "2x120", f"fleetprof_requests_unanswered_seconds{{{A}}}": "1x120"}, False,
     "as ever"),
    ("FleetprofStoreUnusable", {f"fleetprof_store_usable{{{A}}}": "0x120", f"fleetprof_store_usable{{{B}}}": "1x120"},
     True, "of one cluster"),
    ("FleetprofStoreUnusable", {f"fleetprof_store_usable{{{A}}}": "1x110 0 1x10"}, False, "for a moment"),
    ("FleetprofTelemetryMissing", {SIDECARS: "4x120", REPORTING: "0x120"}, True, "sidecars without telemetry"),
    ("FleetprofTelemetryMissing", {SIDECARS: "4x120"}, True, "the metric itself is missing"),
    ("FleetprofTelemetryMissing", {SIDECARS: "4x120", REPORTING: "1x120"}, False, "reports"),
    ("FleetprofTelemetryMissing", {SIDECARS: "0x120", REPORTING: "0x120"}, False, "no sidecars"),
    ("FleetprofRanksLost", {FAILED: "0+1x120", DONE: "0+9x120"}, True, "one in ten"),
    ("FleetprofRanksLost", {FAILED: "0+1x120", DONE: "0+99x120"}, False, "one in a hundred"),
    ("FleetprofRanksLost", {FAILED: "7x120", DONE: "9x120"}, False, "nothing is captured"),
    ("FleetprofReportsFail", {NO_REPORT: "0x100 1x20"}, True, "one"),
    ("FleetprofReportsFail", {NO_REPORT: "5x120"}, False, "none lately"),
    ("FleetprofPodsNotInjected", {NO_ROOM: "0x100 3x20"}, True, "no room"),
    ("FleetprofPodsNotInjected", {INJECTED: "0+3x120", NO_ROOM: "3x120"}, False, "all lately"),
    ("FleetprofSidecarsNotStarted", {NOT_STARTED: "0x100 3x20"}, True, "no image"),
    ("FleetprofSidecarsNotStarted", {NOT_STARTED: "3x120"}, False, "none lately"),
    ("FleetprofWebhookFailsOpen", {OPEN: "0x110 2x10"}, True, "let through"),
    ("FleetprofWebhookFailsOpen", {OPEN: "2x120"}, False, "answered"),
    ("FleetprofHubRefuses", {REFUSED: "0+1x120"}, True, "a share is used up"),
    ("FleetprofHubRefuses", {BAD: "0+1x120"}, False, "somebody knocks"),
    ("FleetprofAlertsLost", {LOST: "0x115 9x5"}, True, "too many"),
    ("FleetprofAlertsLost", {LOST: "9x120"}, False, "none lately"),
    ("FleetprofHistoryNotStored", {NOT_STORED: "0+1x120"}, True, "the store refuses"),
    ("FleetprofHistoryNotStored", {NOT_STORED: "0+1x120", STORED: "0+1x120"}, False, "now and then"),
    ("FleetprofHistoryNotStored", {NOT_STORED: "9x120"}, False, "long ago"),
    ("FleetprofWebUiStale", {LOOKED: "0+60x60 3600x60"}, True, "since an hour"),
    ("FleetprofWebUiStale", {LOOKED: "0+60x120"}, False, "a minute ago"),
    ("FleetprofWebUiStale", {}, False, "no web UI"),
]  # fmt: skip


@pytest.fixture(scope="module")
def groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = render((*S3, "rules.enabled=true")).one("PrometheusRule", "fleetprof")["spec"][
        "groups"
    ]
    return found


def scrape(series: dict[str, str], job: str = JOB) -> list[dict[str, str]]:
    """Series as a scrape of that name stores them."""
    found = []
    for name, values in series.items():
        metric, _, labels = name.partition("{")
        all_labels = ",".join(filter(None, [f'job="{job}"', labels.removesuffix("}")]))
        found.append({"series": f"{metric}{{{all_labels}}}", "values": values})
    return found


def run_promtool(tests: list[tuple[list[dict[str, Any]], dict[str, Any]]], folder: Path) -> None:
    """Runs tests, each on its own rules, which are checked as well: promtool evaluates all rules that it reads."""
    for number, (groups, test) in enumerate(tests):
        document = {"rule_files": [f"rules-{number}.yaml"], "evaluation_interval": "1m", "tests": [test]}
        (folder / f"rules-{number}.yaml").write_text(yaml.safe_dump({"groups": groups}))
        (folder / f"tests-{number}.yaml").write_text(yaml.safe_dump(document, width=1000))
    program = find_program("promtool")
    for words, files in ((["check", "rules"], "rules-*.yaml"), (["test", "rules"], "tests-*.yaml")):
        names = sorted(path.name for path in folder.glob(files))
        result = subprocess.run([program, *words, *names], cwd=folder, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def leave_one_alert(groups: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The recording rules, and one alert."""
    return [group | {"rules": [rule for rule in group["rules"] if rule.get("alert", name) == name]} for group in groups]


def alerts(groups: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def test_each_alert_fires_when_it_should_and_only_then(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    tests = [
        (
            leave_one_alert(groups, alert),
            {
                "name": f"{alert}: {why}",
                "interval": "1m",
                "input_series": scrape(series),
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)',
                        "eval_time": "119m",
                        "exp_samples": [{"labels": "{}", "value": int(fires)}],
                    }
                ],
            },
        )
        for alert, series, fires, why in CASES
    ]
    run_promtool(tests, tmp_path)


# How other series of the same names come into a Prometheus: by a Service of our Service's name, by a monitor of the
# release's name in another namespace, by a scrape that names no job.
OTHERS = ["fleetprof-metrics", "team/fleetprof", ""]


@pytest.mark.attack
@pytest.mark.parametrize("job", OTHERS)
def test_series_of_others_fire_and_silence_nothing(groups: list[dict[str, Any]], tmp_path: Path, job: str) -> None:
    """A tenant's pod shows every series of ours and all that is recorded of them."""
    quiet = {alert: series for alert, series, fires, _ in CASES if not fires and series}
    tests = []
    first = {alert: (series, why) for alert, series, fires, why in reversed(CASES) if fires}
    for alert, (series, why) in first.items():
        if alert in ("FleetprofWebhookFailsOpen", "FleetprofOperatorDown"):
            continue  # the API server's series; nothing at all
        shown = {
            "nothing of ours": ([], scrape(series, job), 0),
            "ours": (scrape(series), scrape(quiet[alert], job), 1),
        }
        recorded = {
            f"fleetprof:workload_watched:bool{{{OF}}}": "1x400",
            f"fleetprof:workload_activity:ratio{{{OF}}}": "0x400",
        }
        shown["recorded series"] = ([], scrape(recorded, job), 0)
        for beside, (ours, theirs, count) in shown.items():
            tests.append(
                (
                    leave_one_alert(groups, alert),
                    {
                        "name": f"{alert}: {why}; {beside}",
                        "interval": "1m",
                        "input_series": ours + theirs,
                        "promql_expr_test": [
                            {
                                "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)',
                                "eval_time": "119m",
                                "exp_samples": [{"labels": "{}", "value": count}],
                            }
                        ],
                    },
                )
            )
    run_promtool(tests, tmp_path)


@pytest.mark.attack
def test_an_operator_of_others_does_not_hide_that_ours_is_down(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    test = {
        "name": "another's build_info",
        "interval": "1m",
        "input_series": scrape(ALIVE, "team/fleetprof"),
        "promql_expr_test": [
            {
                "expr": 'count(ALERTS{alertname="FleetprofOperatorDown", alertstate="firing"})',
                "eval_time": "119m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
        ],
    }
    run_promtool([(groups, test)], tmp_path)


def test_no_rule_looks_at_series_of_others(groups: list[dict[str, Any]]) -> None:
    for group in groups:
        for rule in group["rules"]:
            for name, matcher in re.findall(r"(\bfleetprof[_:][a-z0-9_:]+)(\{[^}]*\})?", rule["expr"]):
                assert f'job="{JOB}"' in matcher, f"{name} in {rule['expr']}"


def test_whoever_scrapes_by_other_means_names_that_scrape() -> None:
    rule = render((*S3, "rules.enabled=true", "rules.job=fleetprof")).one("PrometheusRule", "fleetprof")
    assert 'job="fleetprof"' in yaml.safe_dump(rule)
    assert JOB not in yaml.safe_dump(rule)


def test_our_own_monitor_writes_the_job_that_rules_look_for() -> None:
    values = (*S3, "rules.enabled=true", "serviceMonitor.enabled=true")
    (endpoint,) = render(values).one("ServiceMonitor", "fleetprof")["spec"]["endpoints"]
    assert {"targetLabel": "job", "replacement": JOB} in endpoint["relabelings"]


def test_alerts_about_ourselves_say_of_which_cluster_and_release(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    """One installation's trouble is one alert with its labels, whatever else is there."""
    series = {f"{name[:-1]},{of}}}" if name.endswith("}") else f"{name}{{{of}}}": values
              for name, values in ((NO_REPORT, "0x100 1x20"), (NO_ROOM, "0x100 3x20"), (LOST, "0x115 9x5"),
                                   (REFUSED, "0+1x120"), (FAILED, "0+1x120"), (NOT_STORED, "0+1x120"))
              for of in (A,)} | {f"{NO_REPORT[:-1]},{B}}}": "0x120"}  # fmt: skip
    names = "FleetprofReportsFail|FleetprofPodsNotInjected|FleetprofAlertsLost|FleetprofHubRefuses|FleetprofRanksLost"
    test = {
        "name": "labels",
        "interval": "1m",
        "input_series": scrape(series),
        "promql_expr_test": [
            {
                "expr": "count by (cluster, namespace) "
                f'(ALERTS{{alertname=~"{names}|FleetprofHistoryNotStored", alertstate="firing"}})',
                "eval_time": "119m",
                "exp_samples": [{"labels": f"{{{A}}}", "value": 6}],
            }
        ],
    }
    run_promtool([(groups, test)], tmp_path)


def test_every_alert_has_a_firing_and_a_quiet_case(groups: list[dict[str, Any]]) -> None:
    tried = Counter((alert, fires) for alert, _, fires, _ in CASES)
    assert set(tried) == {(alert, fires) for alert in alerts(groups) for fires in (True, False)}


def test_every_alert_says_what_people_need_and_has_a_runbook(groups: list[dict[str, Any]]) -> None:
    page = PAGE.read_text()
    for name, rule in alerts(groups).items():
        assert rule["labels"]["severity"] in ("critical", "warning")
        annotations = rule["annotations"]
        assert set(annotations) == {"summary", "description", "runbook_url"}
        assert "{{" not in annotations["summary"], "a summary is the same for all"
        assert annotations["runbook_url"].endswith(f"/docs/alerts.md#{name.lower()}")
        part = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        assert len(part) > 100, f"docs/alerts.md has no runbook for {name}"
        assert "1." in part, f"the runbook of {name} says no steps"
    assert re.findall(r"^### (Fleetprof\w+)$", page, re.MULTILINE) == list(alerts(groups))


def test_what_is_recorded_is_what_alerts_and_dashboards_read(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    """Each recording rule with a value that it has, and where it has none."""
    cases: dict[str, tuple[dict[str, str], list[float]]] = {
        "fleetprof:workload_activity:ratio": ({SM: "0.2x30", BUSY: "0.9x30"}, [0.2]),
        "fleetprof:workload_iterations_per_second:avg": ({RATE: "4x20 2x20"}, [2]),
        "fleetprof:workload_iteration_seconds:avg": ({TIME: "1x10 3x30"}, [3]),
        "fleetprof:workload_watched:bool": ({**YOUNG, **EXEMPT}, []),
    }
    recorded = {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}
    assert recorded == set(cases)
    tests = [
        (
            groups,
            {
                "name": name,
                "interval": "1m",
                "input_series": scrape(series),
                "promql_expr_test": [
                    {
                        "expr": f"sum({name})",
                        "eval_time": "30m",
                        "exp_samples": [{"labels": "{}", "value": value} for value in expected],
                    }
                ],
            },
        )
        for name, (series, expected) in cases.items()
    ]
    run_promtool(tests, tmp_path)


def test_thresholds_and_the_choice_of_alerts_are_values() -> None:
    values = ("thresholds.slowRankRatio=0.65",)
    rule = render(
        (*S3, "rules.enabled=true", *(f"rules.{value}" for value in values), "rules.disabled={FleetprofHubRefuses}")
    ).one("PrometheusRule", "fleetprof")
    found = alerts(rule["spec"]["groups"])
    assert "< 0.65" in found["FleetprofSlowRank"]["expr"]
    assert "FleetprofHubRefuses" not in found
    assert "@" not in yaml.safe_dump(rule)
