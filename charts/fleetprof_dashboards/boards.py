"""The three dashboards: the fleet, one job, fleetprof itself."""

from collections.abc import Iterator
from typing import Final

from fleetprof_dashboards.panels import Graph, make_dashboard

_JOB: Final = 'namespace="$namespace",kind="$kind",workload="$workload"'
_NAME: Final = "{{namespace}}/{{workload}}"
_SAME_JOB: Final = "on (namespace, workload, kind)"
_WORST: Final = 20

_FLEET: Final = (
    Graph(
        "Least used GPUs",
        "The jobs with the lowest mean activity of their GPUs.",
        "percentunit",
        ((f"bottomk({_WORST}, fleetprof:workload_activity:ratio)", _NAME),),
    ),
    Graph(
        "GPUs by use",
        "Ranks with a GPU, by whether their job uses it.",
        "short",
        (
            (
                f"sum(fleetprof_workload_gpus and {_SAME_JOB} fleetprof:workload_activity:ratio < 0.3)",
                "below 30 %",
            ),
            (
                f"sum(fleetprof_workload_gpus and {_SAME_JOB} fleetprof:workload_activity:ratio >= 0.3)",
                "30 % and more",
            ),
        ),
    ),
    Graph(
        "Slowest against their own past",
        "Time of iterations as a multiple of their best in six hours.",
        "short",
        (
            (
                f"topk({_WORST}, fleetprof:workload_iteration_seconds:avg"
                " / min_over_time(fleetprof:workload_iteration_seconds:avg[6h]))",
                _NAME,
            ),
        ),
    ),
    Graph(
        "Slowest ranks",
        "The lowest rank's activity as a share of its peers' mean.",
        "percentunit",
        ((f"bottomk({_WORST}, fleetprof_workload_lowest_rank_share)", f"{_NAME} {{{{measure}}}}"),),
    ),
    Graph(
        "Power",
        "Of all GPUs of each namespace.",
        "watt",
        (('sum by (namespace) (fleetprof_workload_gpu_power_watts{aggregation="sum"})', "{{namespace}}"),),
    ),
    Graph(
        "Throttled ranks",
        "GPUs that lower their clocks, by reason.",
        "short",
        (("sum by (reason) (fleetprof_workload_gpu_throttled_ranks)", "{{reason}}"),),
    ),
)
_RANKS: Final = (("mean", "mean"), ("min", "lowest rank"), ("max", "highest rank"))


def _over_ranks(measure: str) -> tuple[tuple[str, str], ...]:
    return tuple((f'fleetprof_workload_{measure}{{aggregation="{how}",{_JOB}}}', words) for how, words in _RANKS)


_ONE_JOB: Final = (
    Graph("Time of an iteration", "The median of the latest iterations.", "s", _over_ranks("iteration_seconds")),
    Graph("Iterations per second", "0 while the job makes none.", "short", _over_ranks("iterations_per_second")),
    Graph(
        "Activity of streaming multiprocessors",
        "Where the device tells it.",
        "percentunit",
        _over_ranks("gpu_sm_active_ratio"),
    ),
    Graph(
        "GPU busy",
        "What the driver calls utilisation.",
        "percentunit",
        _over_ranks("gpu_busy_ratio"),
    ),
    Graph("Clock of multiprocessors", "Lower than its peers': throttled.", "hertz", _over_ranks("gpu_sm_clock_hertz")),
    Graph("Power", "Of each GPU.", "watt", _over_ranks("gpu_power_watts")),
    Graph("Host CPU busy", "Of the pod's node.", "percentunit", _over_ranks("host_cpu_busy_ratio")),
    Graph(
        "Pressure on the CPU",
        "Share of time in which something waited for it.",
        "percentunit",
        _over_ranks("host_cpu_pressure_ratio"),
    ),
    Graph(
        "Reports of policies",
        "When captures by policy ended.",
        "dateTimeAsIso",
        ((f"1000 * fleetprof_policy_report_timestamp_seconds{{{_JOB}}}", "{{policy}} {{request}} {{result}}"),),
    ),
)
_OURSELVES: Final = (
    Graph("Sidecars", "With an open stream.", "short", (("sum(fleetprof_sidecars_connected)", "connected"),)),
    Graph("Requests", "That have not ended.", "short", (("sum by (state) (fleetprof_requests)", "{{state}}"),)),
    Graph(
        "Ranks that were captured",
        "By result.",
        "short",
        (("sum by (result) (increase(fleetprof_ranks_finished_total[1h]))", "{{result}}"),),
    ),
    Graph(
        "From request to report",
        "Of nine in ten captures.",
        "s",
        (("histogram_quantile(0.9, sum by (le) (rate(fleetprof_request_seconds_bucket[1h])))", "9 of 10"),),
    ),
    Graph(
        "Policies",
        "Triggers that fired, by what came of it.",
        "short",
        (("sum by (result) (increase(fleetprof_policy_firings_total[1h]))", "{{result}}"),),
    ),
    Graph(
        "Refused by the hub",
        "Calls and streams, by why.",
        "short",
        (("sum by (kind) (increase(fleetprof_hub_refusals_total[1h]))", "{{kind}}"),),
    ),
    Graph(
        "Pods at the webhook",
        "By what became of them.",
        "short",
        (("sum by (result) (increase(fleetprof_webhook_pods_total[1h]))", "{{result}}"),),
    ),
    Graph(
        "Memory of the hub",
        "About what it keeps of sidecars.",
        "bytes",
        (("sum(fleetprof_hub_kept_bytes)", "kept"),),
    ),
)


def make_dashboards() -> Iterator[tuple[str, str]]:
    """(file name, JSON) of each."""
    fleet = "Which jobs waste GPUs, by telemetry of fleetprof's sidecars."
    yield "fleet.json", make_dashboard("fleetprof-fleet", "fleetprof: the fleet", fleet, (), _FLEET)
    job = "One job: its iterations, its GPUs, its hosts, over all ranks."
    chosen = ("namespace", "kind", "workload")
    yield "job.json", make_dashboard("fleetprof-job", "fleetprof: one job", job, chosen, _ONE_JOB)
    own = "The operator, its hub and the webhook."
    yield "fleetprof.json", make_dashboard("fleetprof-itself", "fleetprof: itself", own, (), _OURSELVES)
