"""The process around it: settings, logs, probes and metrics."""

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_api.process.address import HostPort
from fleetprof_operator.health import Health
from fleetprof_operator.hub.access.call_refusals import CallRefusal
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.storage.store_probe import StoreProbe
from fleetprof_operator.injection import webhook
from fleetprof_operator.log import name_request
from fleetprof_operator.metrics import ENDS, RESULTS, STATES, Metrics
from fleetprof_operator.policies.assembly import Policies
from fleetprof_operator.profilerequests.requesters import Requesters
from fleetprof_operator.settings import read_settings
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.request_ground import RequestGround, message
from harness.memory_store import MemoryStore
from prometheus_client import generate_latest

ROOT = Path(__file__).parents[2]
LEAST = ["--store", "s3://b/p", "--namespace", "fleetprof-system"]


# ---------------------------------------------------------------- settings


def test_settings_come_from_flags_and_environment_and_the_flag_wins() -> None:
    settings = read_settings(
        ["--namespace", "here", "--max-captures", "7"],
        {
            "FLEETPROF_STORE": "s3://b/p?endpoint=http://minio:9000",
            "FLEETPROF_NAMESPACE": "there",
            "FLEETPROF_NAMESPACES": " a, b,",
            "FLEETPROF_LISTEN": "hub=[::1]:1",
            "FLEETPROF_TLS_NAMES": "hub,webhook",
        },
    )
    assert (settings.namespace, settings.namespaces, settings.max_captures) == ("here", ("a", "b"), 7)
    assert (settings.listen.hub, settings.listen.http.port) == (HostPort("::1", 1), 8080)
    assert (settings.store.endpoint, settings.tls_names) == ("http://minio:9000", ("hub", "webhook"))
    assert (settings.tls_directory, settings.analyzer_pod, settings.report_url) == (None, None, "")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--store", "ftp://x"], "--store: 'ftp://x' must be a directory or s3://bucket/prefix"),
        (["--listen", "hub=8443"], "--listen: '8443' must be HOST:PORT"),
        (["--listen", "127.0.0.1:0"], "must be NAME=HOST:PORT with a name of hub, http, figures, alerts"),
        (["--max-captures", "0"], "--max-captures: must be from 1 to 10000, got 0"),
        (["--analysis-deadline-seconds", "5"], "--analysis-deadline-seconds: must be from 60 to 86400"),
        (["--report-url", "https://x/{secret}"], "--report-url: may hold {namespace}, {name} and {uid} only"),
        (["--analyzer-pod", "/nowhere"], "--analyzer-pod: /nowhere cannot be read"),
        (["--bounds", "/nowhere"], "--bounds: /nowhere cannot be read"),
        (["--store-authority", "/nowhere"], "--store-authority: /nowhere cannot be read"),
        (["--store-authority", __file__], "holds no certificate"),
        (["--log-level", "loud"], "invalid choice: 'loud'"),
    ],
)
def test_wrong_settings_end_with_a_sentence(more: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings([*LEAST, *more], {})
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "template", ["[]", "{}", "spec: {}", "spec: {containers: []}", "spec: {containers: [1]}", ": :"]
)
def test_a_template_that_is_none_is_refused(template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(template)
    with pytest.raises(SystemExit):
        read_settings([*LEAST, "--analyzer-pod", str(path)], {})
    assert "--analyzer-pod: " in capsys.readouterr().err


# ---------------------------------------------------------------- logs


@pytest.mark.parametrize(
    ("reference", "keys"),
    [
        ({"uid": "u", "namespace": "team", "name": "five"}, {"capture": "u", "namespace": "team", "name": "five"}),
        ({"uid": "u", "name": "five"}, {"capture": "u", "name": "five"}),
        ({"namespace": None, "name": ""}, {}),
        ("no reference", None),
        (None, None),
    ],
)
def test_lines_of_kopf_name_the_request_with_the_keys_of_our_own(reference: Any, keys: dict[str, str] | None) -> None:
    record = logging.LogRecord("kopf.objects", logging.INFO, "f.py", 1, "Handler succeeded", (), None)
    if reference is not None:
        record.k8s_ref = reference
    assert name_request(record)
    assert getattr(record, "fields", None) == keys


# ---------------------------------------------------------------- metrics


def test_every_metric_is_documented_and_nothing_else() -> None:
    hub = Hub(store=MemoryStore())
    metrics = Metrics(dict)
    metrics.show_hub(hub)
    probe = StoreProbe(StoreCalls(MemoryStore()), "fleetprof-system")
    probe.tried = True
    leadership: Any = SimpleNamespace(held=SimpleNamespace(is_set=lambda: True), count_age_s=lambda: 1.0)
    metrics.registry.register(Health(leadership, probe, lambda: 0.0))
    cluster: Any = None
    settings, requesters = read_settings(LEAST, {}), Requesters(cluster, "")
    Policies.assemble(settings, cluster, hub, metrics, requesters).register(metrics.registry)
    metrics.note_end("Complete", None)
    exposed = set(re.findall(r"^# TYPE (fleetprof_\w+) ", generate_latest(metrics.registry).decode(), re.MULTILINE))
    names = {name for name in exposed if not name.endswith("_created")}
    page = (ROOT / "docs/metrics.md").read_text().partition("## The operator's")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == names
    for state in STATES:
        assert f"`{state}`" in page
    for kind in CallRefusal:
        assert f"`{kind.value}`" in page


def test_label_sets_are_bounded() -> None:
    import fleetprof_api.hub.hub_pb2 as pb

    metrics = Metrics(lambda: {"Waiting": 2, "a state of tomorrow": 1})
    metrics.show_hub(Hub(store=MemoryStore()))
    ranks = [pb.CaptureEvent(state=pb.UPLOADED), pb.CaptureEvent(state=pb.FAILED, reason="TooLate"),
             pb.CaptureEvent(state=pb.FAILED, reason="whatever a sidecar says")]  # fmt: skip
    metrics.note_end("Complete", pb.CaptureStatus(ranks=ranks))
    text = generate_latest(metrics.registry).decode()
    assert 'fleetprof_requests{state="Waiting"} 2.0' in text
    assert 'fleetprof_requests{state="Other"} 1.0' in text
    assert "fleetprof_sidecars_connected 0.0" in text
    assert 'fleetprof_requests_finished_total{reason="AnalysisFailed"} 0.0' in text  # before the first of them
    kinds = re.findall(r'fleetprof_hub_refusals_total{kind="(\w+)"} 0.0', text)
    assert kinds == [kind.value for kind in CallRefusal]
    counted = dict(re.findall(r'fleetprof_ranks_finished_total{result="(\w+)"} (\S+)', text))
    assert list(counted) == list(RESULTS)
    assert {result for result, number in counted.items() if number != "0.0"} == {"Uploaded", "TooLate", "Internal"}


def test_a_counter_begins_at_zero_for_each_reason_that_the_pages_list() -> None:
    reasons = (ROOT / "docs/reasons.md").read_text().partition("## Reasons of a capture")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| (?:True|False) \|", reasons, re.MULTILINE)
    assert sorted(listed) == sorted(ENDS)
    left_alone = (
        (ROOT / "docs/injection.md").read_text().partition("## When a pod is left alone")[2].partition("\n## ")[0]
    )
    results = [
        name for row in re.findall(r"^\| (`.+?`) \|", left_alone, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    assert {*results, "Injected"} - {"result"} == set(webhook.RESULTS)


# ---------------------------------------------------------------- probes


@pytest.mark.cluster
async def test_probes(ground: RequestGround) -> None:
    assert ground.scrape("/healthz") == "ok\n"
    await ground.until(lambda: ground.scrape("/readyz") == "ok\n", "readiness")
    await ground.add_rank(0, 1)
    assert "fleetprof_sidecars_connected 1.0" in ground.scrape()
    ground.ask(suspend=True)
    await ground.until(lambda: 'fleetprof_requests{state="Suspended"} 1.0' in ground.scrape(), "the gauge")


@pytest.mark.cluster
async def test_a_store_that_refuses_keeps_the_operator_from_being_ready_and_is_told(
    api: ApiServer, tmp_path: Path
) -> None:
    ground = RequestGround(api, tmp_path)
    ground.add_lease(ground.namespace)
    ground.arguments += ["--leases", ground.namespace]
    ground.lose_store()
    ground.start_operator()
    try:
        await ground.until(lambda: "cannot be used" in ground.find_obstacle(), "the reason")
        assert "fleetprof_store_usable 0.0" in ground.scrape()
        ground.find_store()
        await ground.until(lambda: not ground.find_obstacle(), "readiness")
        assert "fleetprof_store_usable 1.0" in ground.scrape()
        ground.lose_store()
        ground.ask()
        status = await ground.until_state("Waiting")
        assert "the object store does not take the request" in message(status)
        assert '"audit": "taken"' not in ground.log()
        ground.find_store()
        await ground.until(lambda: '"audit": "taken"' in ground.log(), "the request to be taken")
        assert ground.log().count("cannot begin yet") == 1
    finally:
        await ground.close()
