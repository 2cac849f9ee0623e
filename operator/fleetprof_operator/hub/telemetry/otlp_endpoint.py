"""The address of an OpenTelemetry collector, as operator and command line are told it.

Guarantees: what is refused is refused before anything starts, with the reason; nothing of OpenTelemetry is imported
where nobody asks for it.
"""

import importlib.util
from urllib.parse import urlsplit


def check_otlp_endpoint(text: str) -> str:
    """`text`, which names the OTLP/gRPC port of a collector. Raises ValueError."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.username or parts.query or parts.fragment:
        raise ValueError("must hold no credentials; OTEL_EXPORTER_OTLP_HEADERS is the variable for these")
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or parts.path not in ("", "/"):
        raise ValueError(f"must be http://HOST:PORT or https://HOST:PORT, a collector's OTLP/gRPC port, not {text}")
    try:
        found = importlib.util.find_spec("opentelemetry.exporter.otlp.proto.grpc")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ValueError("needs OpenTelemetry's packages: install fleetprof[otlp]")
    return text
