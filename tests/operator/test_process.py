"""The process around it: settings, logs, probes and metrics."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.process.address import HostPort
from fleetprof_operator.hub.access.call_refusals import CallRefusal
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.log import name_request
from fleetprof_operator.metrics import RESULTS, STATES, Metrics
from fleetprof_operator.policies.assembly import Policies
from fleetprof_operator.settings import read_settings
from fleetprof_store.memory import MemoryStore
from harness.kubernetes.request_ground import RequestGround
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
            "FLEETPROF_HUB_LISTEN": "[::1]:1",
            "FLEETPROF_TLS_NAMES": "hub,webhook",
        },
    )
    assert (settings.namespace, settings.namespaces, settings.max_captures) == ("here", ("a", "b"), 7)
    assert settings.hub_listen == HostPort("::1", 1)
    assert (settings.store.endpoint, settings.tls_names) == ("http://minio:9000", ("hub", "webhook"))
    assert (settings.tls_directory, settings.analyzer_pod, settings.report_url) == (None, None, "")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--store", "ftp://x"], "--store: 'ftp://x' must be a directory or s3://bucket/prefix"),
        (["--hub-listen", "8443"], "--hub-listen: '8443' must be HOST:PORT"),
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
    cluster: Any = None
    Policies.assemble(read_settings(LEAST, {}), cluster, hub, metrics).register(metrics.registry)
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
    kinds = re.findall(r'fleetprof_hub_refusals_total{kind="(\w+)"} 0.0', text)
    assert kinds == [kind.value for kind in CallRefusal]
    assert set(re.findall(r'fleetprof_ranks_finished_total{result="(\w+)"}', text)) == {
        "Uploaded",
        "TooLate",
        "Internal",
    }
    assert {"Uploaded", "TooLate", "Internal"} <= set(RESULTS)


# ---------------------------------------------------------------- probes


@pytest.mark.cluster
async def test_probes(ground: RequestGround) -> None:
    assert ground.scrape("/healthz") == "ok\n"
    await ground.until(lambda: ground.scrape("/readyz") == "ok\n", "readiness")
    await ground.add_rank(0, 1)
    assert "fleetprof_sidecars_connected 1.0" in ground.scrape()
    ground.ask(suspend=True)
    await ground.until(lambda: 'fleetprof_requests{state="Suspended"} 1.0' in ground.scrape(), "the gauge")
