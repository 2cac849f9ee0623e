"""The webhook's settings: flags, each also as an environment variable FLEETPROF_<FLAG>, checked as a whole."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api.process.address import HostPort, parse_host_port
from fleetprof_api.process.settings import SettingsParser

from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings, SidecarResources

# Only checked against: the real one comes with the certificate.
_SOME_CA: Final = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Everything that the webhook is told from outside."""

    listen: HostPort
    health_listen: HostPort
    tls_directory: Path
    hub_ca: Path
    sidecar: InjectionSettings
    require_image: bool
    log_level: str


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> WebhookSettings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    parser = SettingsParser(
        "fleetprof-webhook",
        "Adds the sidecar to pods, as the API server asks it to.",
        environment,
        exit_codes="0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own",
    )
    parser.setting("listen", default="0.0.0.0:9443", metavar="HOST:PORT", help="where the API server asks, over TLS")
    parser.setting("health-listen", default="0.0.0.0:8080", metavar="HOST:PORT", help="health and metrics, plain HTTP")
    parser.setting("tls-directory", required=True, metavar="DIR", help="tls.crt and tls.key; they may come later")
    parser.setting("hub-ca-file", required=True, metavar="FILE", help="the hub's authority; it may come later")
    parser.setting("hub", required=True, metavar="HOST:PORT", help="the hub by name")
    parser.setting("store-host", default="", metavar="NAME", help="the object store, where it has a name of its own")
    parser.setting("sidecar-image", required=True, metavar="IMAGE", help="image of the sidecar")
    parser.setting("sidecar-pull-policy", default="IfNotPresent", metavar="POLICY", help="Always, IfNotPresent, Never")
    parser.setting("sidecar-resources", default="{}", metavar="JSON", help="requests, limits, guaranteed, storage")
    parser.setting("sidecar-dcgm-url", default="", metavar="URL", help="where sidecars ask their node's dcgm-exporter")
    parser.setting(
        "sidecar-user", default="65532", may_be_empty=True, metavar="UID", help="empty: the user that admission gives"
    )
    parser.switch("require-image", help="inject only where every node that a pod may go to has the sidecar's image")
    parser.log_level()
    given = parser.parse_args(arguments)
    try:
        return _check(given, environment)
    except ValueError as problem:
        parser.error(str(problem))


def _check(given: argparse.Namespace, environment: Mapping[str, str]) -> WebhookSettings:
    user = given.sidecar_user
    if user and not user.isdecimal():
        raise ValueError(f"--sidecar-user: {user!r} is not a uid")
    try:
        resources = msgspec.json.decode(given.sidecar_resources, type=_Resources)
    except msgspec.DecodeError as problem:
        raise ValueError(f"--sidecar-resources: {problem}") from None
    if given.require_image and given.sidecar_pull_policy == "Always":
        raise ValueError("--require-image: has no meaning with --sidecar-pull-policy Always, which pulls in any case")
    return WebhookSettings(
        listen=_read_address("--listen", given.listen),
        health_listen=_read_address("--health-listen", given.health_listen),
        tls_directory=Path(given.tls_directory),
        hub_ca=Path(given.hub_ca_file),
        sidecar=InjectionSettings(
            image=given.sidecar_image,
            image_pull_policy=given.sidecar_pull_policy,
            hub=given.hub,
            hub_ip=environment.get(_service_variable(given.hub), ""),
            store_host=given.store_host,
            dcgm_url=given.sidecar_dcgm_url,
            ca=_SOME_CA,
            run_as_user=int(user) if user else None,
            resources=resources.complete(),
        ),
        require_image=given.require_image,
        log_level=given.log_level,
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


def _read_address(flag: str, text: str) -> HostPort:
    try:
        return parse_host_port(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def _service_variable(hub: str) -> str:
    """The kubelet gives each Service of our namespace to us as NAME_SERVICE_HOST."""
    return hub.partition(":")[0].partition(".")[0].upper().replace("-", "_") + "_SERVICE_HOST"
