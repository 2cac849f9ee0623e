"""Telemetry to an OpenTelemetry collector, by OTLP over gRPC: what /metrics tells of workloads, pushed.

Guarantees: a collector that is away, or slow, costs its exports and nothing else: they are made in a thread, one at a
time, each within EXPORT_S; a missed one is not made up for, since the next one tells what is so then. Headers and
certificates are those of OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_HEADERS and so on).
"""

import asyncio
import logging
import time
from collections import Counter
from typing import Final

from fleetprof_api import __version__
from grpc import Compression
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource
from prometheus_client.core import Metric

from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.otlp_points import make_metrics_data
from fleetprof_operator.hub.telemetry.snapshot import take_snapshot

log = logging.getLogger(__name__)
logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.ERROR)  # it has a line for each try otherwise

EXPORT_S: Final = 10.0
MOST_POINTS: Final = 10_000
"""Of one call: some 2 MB, where a collector takes 4 MiB unless it is told otherwise."""


class OtlpExport:
    """Sends to `endpoint`, http://HOST:PORT or https://HOST:PORT, every `interval_s` while `run` runs.

    `results` counts exports by their result.
    """

    def __init__(self, endpoint: str, interval_s: float, board: TelemetryBoard, instance: str) -> None:
        self._endpoint = endpoint
        self._interval_s = interval_s
        self._board = board
        self._resource = Resource.create(
            {"service.name": "fleetprof", "service.version": __version__, "service.instance.id": instance}
        )
        self._exporter = OTLPMetricExporter(
            endpoint=endpoint,
            timeout=EXPORT_S,
            compression=Compression.Gzip,
            max_export_batch_size=MOST_POINTS,
        )
        self._failing = False
        self.results: Counter[str] = Counter(sent=0, failed=0)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._interval_s)
                await self.send()
        finally:
            self._exporter.shutdown()

    async def send(self) -> None:
        """What is so now; nothing where no workload reports."""
        try:
            self._board.sweep(time.time_ns())
            families = (await take_snapshot(self._board)).collect()
            if not families:
                return
            sent = await asyncio.to_thread(self._export, families)
        except Exception:  # one export that fails, by whatever, must not end the later ones
            log.exception("telemetry could not be sent to %s", self._endpoint)
            sent = False
        self.results["sent" if sent else "failed"] += 1
        if sent is self._failing:
            self._failing = not sent
            log.warning(
                "telemetry is sent to %s again" if sent else "telemetry cannot be sent to %s; it is tried again",
                self._endpoint,
            )

    def _export(self, families: list[Metric]) -> bool:
        """Blocks: makes the points of a whole fleet, and sends them."""
        data = make_metrics_data(families, self._resource, "fleetprof", time.time_ns())
        return self._exporter.export(data) is MetricExportResult.SUCCESS
