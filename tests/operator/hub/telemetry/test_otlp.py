"""Telemetry by OTLP, to a real receiver: OpenTelemetry's own service behind gRPC."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from fleetprof_operator.hub.telemetry import otlp_export
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.otlp_endpoint import check_otlp_endpoint
from fleetprof_operator.hub.telemetry.otlp_export import OtlpExport
from fleetprof_operator.hub.telemetry.otlp_points import make_metrics_data
from fleetprof_operator.hub.telemetry.snapshot import take_snapshot
from harness.hub.telemetry_reports import full_board
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

JOB = {"namespace": "team", "kind": "Job", "workload": "llama"}


class Receiver(MetricsServiceServicer):
    """What a collector was sent."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []

    def Export(self, request: ExportMetricsServiceRequest, context: Any) -> ExportMetricsServiceResponse:
        self.requests.append(request)
        return ExportMetricsServiceResponse()

    def metrics(self) -> dict[str, Metric]:
        return {
            metric.name: metric
            for request in self.requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@contextmanager
def receive(port: int = 0) -> Iterator[tuple[Receiver, int]]:
    """A receiver and its port."""
    receiver, server = Receiver(), grpc.server(ThreadPoolExecutor(1))
    add_MetricsServiceServicer_to_server(receiver, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield receiver, port
    finally:
        server.stop(None).wait()


def export_of(board: TelemetryBoard, port: int) -> OtlpExport:
    return OtlpExport(f"http://127.0.0.1:{port}", 30, board, "operator-0")


def points(metric: Metric) -> dict[tuple[tuple[str, str], ...], float]:
    """Values by attributes."""
    data = metric.sum if metric.HasField("sum") else metric.gauge
    return {
        tuple(sorted((pair.key, pair.value.string_value) for pair in point.attributes)): point.as_double
        for point in data.data_points
    }


async def test_a_collector_is_told_what_metrics_tells() -> None:
    board = full_board(time.time_ns())
    with receive() as (receiver, port):
        export = export_of(board, port)
        await export.send()
    families = receiver.metrics()
    assert families.keys() == {family.name for family in (await take_snapshot(board)).collect()}
    (resource,) = {str(one.resource) for request in receiver.requests for one in request.resource_metrics}
    assert "service.name" in resource
    assert "operator-0" in resource
    busy = families["fleetprof_workload_gpu_busy_ratio"]
    assert points(busy)[tuple(sorted({**JOB, "aggregation": "mean"}.items()))] == 0.007
    assert {families[f"fleetprof_workload_{name}"].unit for name in ("gpu_memory_used_bytes", "gpu_power_watts")} == {
        "By",
        "W",
    }
    energy = families["fleetprof_workload_gpu_energy_joules"]
    assert energy.sum.is_monotonic
    assert energy.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert points(energy) == {tuple(sorted(JOB.items())): 0.028}
    assert export.results == {"sent": 1, "failed": 0}


async def test_nothing_is_sent_while_no_workload_reports() -> None:
    with receive() as (receiver, port):
        export = export_of(TelemetryBoard(), port)
        await export.send()
    assert (receiver.requests, export.results) == ([], {"sent": 0, "failed": 0})


async def test_a_large_fleet_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_export, "MOST_POINTS", 100)
    board = full_board(time.time_ns())
    with receive() as (receiver, port):
        await export_of(board, port).send()
    assert len(receiver.requests) > 1
    assert receiver.metrics().keys() == {family.name for family in (await take_snapshot(board)).collect()}


async def test_a_collector_that_was_away_is_told_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(otlp_export, "EXPORT_S", 4.0)
    with receive() as (_, port):
        pass
    export = export_of(full_board(time.time_ns()), port)
    await export.send()
    assert export.results == {"sent": 0, "failed": 1}
    with receive(port) as (receiver, _):
        await export.send()
    assert receiver.metrics()
    assert [record.message for record in caplog.records if record.name == otlp_export.__name__] == [
        f"telemetry cannot be sent to http://127.0.0.1:{port}; it is tried again",
        f"telemetry is sent to http://127.0.0.1:{port} again",
    ]


async def test_points_that_cannot_be_made_cost_one_export(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def make(*words: Any) -> Any:
        threads.append(threading.current_thread())
        if len(threads) == 1:
            raise OverflowError("a value that no point can hold")
        return make_metrics_data(*words)

    monkeypatch.setattr(otlp_export, "make_metrics_data", make)
    with receive() as (receiver, port):
        export = export_of(full_board(time.time_ns()), port)
        await export.send()
        assert export.results == {"sent": 0, "failed": 1}
        await export.send()
    assert export.results == {"sent": 1, "failed": 1}
    assert receiver.metrics()
    assert threading.main_thread() not in threads  # the event loop is the hub's


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("collector:4317", "must be http://HOST:PORT"),
        ("http://collector", "must be http://HOST:PORT"),
        ("http://collector:port", "must be http://HOST:PORT"),
        ("http://collector:4318/v1/metrics", "must be http://HOST:PORT"),
        ("ftp://collector:4317", "must be http://HOST:PORT"),
        ("https://user:secret@collector:4317", "must hold no credentials"),
        ("https://collector:4317?key=secret", "must hold no credentials"),
    ],
)
def test_an_address_that_cannot_be_a_collectors_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_otlp_endpoint(text)


@pytest.mark.parametrize("text", ["http://collector.monitoring:4317", "https://[::1]:4317/"])
def test_a_collectors_address_is_taken(text: str) -> None:
    assert check_otlp_endpoint(text) == text
