"""The alerts read of Alertmanager's messages."""

import json
from contextlib import suppress
from typing import Any

import pytest
from fleetprof_operator.policies.triggers.alerts import FiringAlert, InvalidMessage, read_alerts
from hypothesis import given
from hypothesis import strategies as st

LABELS = {"alertname": "FleetprofLowUtilization", "namespace": "team", "kind": "Job", "workload": "llama"}
READ = FiringAlert(
    name="FleetprofLowUtilization",
    namespace="team",
    kind="Job",
    workload="llama",
    pod="",
    started="2026-11-21T09:45:12Z",
    summary="A job uses little of its GPUs.",
)


def message(*alerts: dict[str, Any], **more: object) -> bytes:
    return json.dumps({"version": "4", "status": "firing", "groupKey": "g", "alerts": alerts, **more}).encode()


def alert(status: str = "firing", **labels: str) -> dict[str, Any]:
    return {
        "status": status,
        "labels": LABELS | labels,
        "annotations": {"summary": "A job uses little\n of its GPUs."},
        "startsAt": "2026-11-21T09:45:12Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus/graph",
        "fingerprint": "0123456789abcdef",
    }


def test_an_alert_is_read_with_its_job() -> None:
    assert read_alerts(message(alert())) == [READ]


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ([alert("resolved")], 0),
        ([alert(), alert(), alert(severity="page")], 1),
        ([alert(), alert(alertname="Other"), alert(workload="bert"), alert(namespace="b")], 4),
        ([alert(workload="", kind="")], 0),
        ([alert(workload="", kind="", pod="llama-0")], 1),
        ([alert(namespace="")], 0),
        ([alert(alertname="")], 0),
        ([], 0),
    ],
)
def test_each_alert_about_a_job_counts_once(given: list[dict[str, Any]], number: int) -> None:
    assert len(read_alerts(message(*given))) == number


def test_labels_that_a_scrape_of_ours_renamed_are_those_of_the_job() -> None:
    given = alert(namespace="fleetprof", exported_namespace="team", pod="x", exported_pod="p")
    (read,) = read_alerts(message(given), "fleetprof")
    assert (read.namespace, read.pod) == ("team", "p")


@pytest.mark.attack
@pytest.mark.parametrize("own_namespace", ["fleetprof", ""])
def test_a_series_of_one_namespace_speaks_of_no_other(own_namespace: str) -> None:
    assert read_alerts(message(alert(namespace="mallory", exported_namespace="team")), own_namespace) == []
    (read,) = read_alerts(message(alert(namespace="mallory", exported_namespace="mallory", pod="own")), own_namespace)
    assert (read.namespace, read.pod) == ("mallory", "own")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "must be a message of Alertmanager's webhook"),
        (b"[]", "must be a message of Alertmanager's webhook"),
        (b'{"alerts": [{"labels": {"a": 1}}]}', "must be a message of Alertmanager's webhook"),
        (message(version="3"), "has version '3'"),
        (b'{"alerts": [' + b"{}," * 10_000 + b"{}]}", "at most 10000 are read"),
        (b'{"alerts":' * 5000, "must be a message of Alertmanager's webhook"),
    ],
)
def test_what_is_no_message_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(InvalidMessage, match=words):
        read_alerts(body)


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    with suppress(InvalidMessage):
        read_alerts(body)
