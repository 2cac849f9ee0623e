"""The failures of a call of the Kubernetes API, for all our clients: the API server refused, or nothing came back.

Guarantees: nothing else; each client says at its calls which of the two they raise.
"""

from fleetprof_api.errors import FleetprofError


class ApiUnreachable(FleetprofError):
    """The API server did not answer; the message says how."""


class ApiRefused(FleetprofError):
    """The API server's refusal: HTTP status, reason (`NotFound`, `Conflict`, `Expired` …) and sentence."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
