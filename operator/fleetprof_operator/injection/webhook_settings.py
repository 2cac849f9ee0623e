"""The webhook's settings, from its environment.

    FLEETPROF_LISTEN               where to answer, HOST:PORT                  default 0.0.0.0:9443
    FLEETPROF_HEALTH_LISTEN        health and metrics, plain HTTP              default 0.0.0.0:8080
    FLEETPROF_TLS_DIRECTORY        tls.crt, tls.key; they may come later       required
    FLEETPROF_HUB_CA_FILE          the hub's authority; it may come later      required
    FLEETPROF_HUB                  the hub by name, HOST:PORT                  required
    FLEETPROF_SIDECAR_IMAGE        image of the sidecar                        required
    FLEETPROF_SIDECAR_PULL_POLICY  Always, IfNotPresent, Never                 default IfNotPresent
    FLEETPROF_SIDECAR_RESOURCES    JSON: requests, limits, guaranteed, storage
    FLEETPROF_SIDECAR_USER         uid; empty: what admission gives            default 65532
    FLEETPROF_LOG_LEVEL            debug, info, warning, error                 default info

Guarantees: all is checked before anything starts; an InvalidSettings names the variable or the value, and the rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings, InvalidSettings, SidecarResources

# Only checked against: the real one comes with the certificate.
_SOME_CA: Final = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """All that comes from the environment."""

    listen: tuple[str, int]
    health_listen: tuple[str, int]
    tls_directory: Path
    hub_ca: Path
    sidecar: InjectionSettings


def read_settings(environment: Mapping[str, str]) -> WebhookSettings:
    """The settings. Raises InvalidSettings with the variable's name."""
    hub = _require(environment, "FLEETPROF_HUB")
    user = environment.get("FLEETPROF_SIDECAR_USER", "65532")
    if user and not user.isdigit():
        raise InvalidSettings(f"FLEETPROF_SIDECAR_USER: {user!r} is not a uid")
    try:
        resources = msgspec.json.decode(environment.get("FLEETPROF_SIDECAR_RESOURCES") or "{}", type=_Resources)
    except msgspec.DecodeError as problem:
        raise InvalidSettings(f"FLEETPROF_SIDECAR_RESOURCES: {problem}") from None
    return WebhookSettings(
        listen=_read_address(environment, "FLEETPROF_LISTEN", "0.0.0.0:9443"),
        health_listen=_read_address(environment, "FLEETPROF_HEALTH_LISTEN", "0.0.0.0:8080"),
        tls_directory=Path(_require(environment, "FLEETPROF_TLS_DIRECTORY")),
        hub_ca=Path(_require(environment, "FLEETPROF_HUB_CA_FILE")),
        sidecar=InjectionSettings(
            image=_require(environment, "FLEETPROF_SIDECAR_IMAGE"),
            image_pull_policy=environment.get("FLEETPROF_SIDECAR_PULL_POLICY") or "IfNotPresent",
            hub=hub,
            hub_ip=environment.get(_service_variable(hub), ""),
            ca=_SOME_CA,
            run_as_user=int(user) if user else None,
            resources=resources.complete(),
        ),
    )


class _Resources(msgspec.Struct, forbid_unknown_fields=True):
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}
    guaranteed: dict[str, str | int | float] = {}
    storage: str = ""

    def complete(self) -> SidecarResources:
        """With the defaults for what is not given; a Guaranteed pod's sidecar has at least the memory of others."""
        default = SidecarResources()
        limits = {**default.limits, **_write(self.limits)}
        return SidecarResources(
            requests={**default.requests, **_write(self.requests)},
            limits=limits,
            guaranteed={**default.guaranteed, "memory": limits["memory"], **_write(self.guaranteed)},
            storage=self.storage or default.storage,
        )


def _write(amounts: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _require(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise InvalidSettings(f"{name}: must be set")
    return value


def _read_address(environment: Mapping[str, str], name: str, default: str) -> tuple[str, int]:
    host, _, port = (environment.get(name) or default).rpartition(":")
    if not port.isdigit() or not 0 <= int(port) < 65536:
        raise InvalidSettings(f"{name}: must be HOST:PORT")
    return host.strip("[]"), int(port)


def _service_variable(hub: str) -> str:
    """The kubelet gives each Service of our namespace to us as NAME_SERVICE_HOST."""
    return hub.partition(":")[0].partition(".")[0].upper().replace("-", "_") + "_SERVICE_HOST"
