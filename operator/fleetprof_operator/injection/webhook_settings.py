"""The webhook's settings, as one table."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.settings import LogLevel, Setting, at_port, read_table

from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings, SidecarResources

# Only checked against: the real one comes with the certificate.
_SOME_CA: Final = "-----BEGIN CERTIFICATE-----"


class WebhookAddresses(NamedTuple):
    """The addresses of the webhook: for the API server over TLS, and for probes and Prometheus."""

    https: HostPort = at_port(9443)
    http: HostPort = at_port(8080)


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


def _read_resources(text: str) -> SidecarResources:
    try:
        return msgspec.json.decode(text, type=_Resources).complete()
    except msgspec.DecodeError as problem:
        raise ValueError(str(problem)) from None


def _read_user(text: str) -> int | None:
    if text and not text.isdecimal():
        raise ValueError(f"{text!r} is not a uid")
    return int(text) if text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Everything that the webhook is told from outside. `hub_ip`: the hub's, as the kubelet tells it."""

    listen: Annotated[WebhookAddresses, Setting("other addresses to listen at, e.g. https=127.0.0.1:9443")] = field(
        default_factory=WebhookAddresses
    )
    tls_directory: Annotated[Path, Setting("tls.crt and tls.key; they may come later", metavar="DIR")]
    hub_ca: Annotated[Path, Setting("the hub's authority; it may come later", flag="hub-ca-file", metavar="FILE")]
    hub: Annotated[str, Setting("the hub by name", metavar="HOST:PORT")]
    store_host: Annotated[str, Setting("the object store, where it has a name of its own", metavar="NAME")] = ""
    sidecar_image: Annotated[str, Setting("image of the sidecar", metavar="IMAGE")]
    sidecar_pull_policy: Annotated[str, Setting("Always, IfNotPresent, Never", metavar="POLICY")] = "IfNotPresent"
    sidecar_resources: Annotated[
        SidecarResources, Setting("requests, limits, guaranteed, storage", read=_read_resources, metavar="JSON")
    ] = field(default_factory=SidecarResources)
    sidecar_dcgm_url: Annotated[str, Setting("where sidecars ask their node's dcgm-exporter", metavar="URL")] = ""
    sidecar_user: Annotated[
        int | None, Setting("empty: the user that admission gives", read=_read_user, may_be_empty=True, metavar="UID")
    ] = 65532
    require_image: Annotated[
        bool, Setting("inject only where every node that a pod may go to has the sidecar's image")
    ] = False
    log_level: LogLevel = "info"
    hub_ip: str = ""

    def __post_init__(self) -> None:
        if self.require_image and self.sidecar_pull_policy == "Always":
            raise ValueError(
                "--require-image: has no meaning with --sidecar-pull-policy Always, which pulls in any case"
            )
        _ = self.sidecar

    @property
    def sidecar(self) -> InjectionSettings:
        """The sidecar that pods are given. Raises InvalidSettings."""
        return InjectionSettings(
            image=self.sidecar_image,
            image_pull_policy=self.sidecar_pull_policy,
            hub=self.hub,
            hub_ip=self.hub_ip,
            store_host=self.store_host,
            dcgm_url=self.sidecar_dcgm_url,
            ca=_SOME_CA,
            run_as_user=self.sidecar_user,
            resources=self.sidecar_resources,
        )


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> WebhookSettings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    settings = read_table(
        WebhookSettings,
        arguments,
        environment,
        program="fleetprof-webhook",
        description="Adds the sidecar to pods, as the API server asks it to.",
        exit_codes="0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own",
    )
    return replace(settings, hub_ip=environment.get(_service_variable(settings.hub), ""))


def _service_variable(hub: str) -> str:
    """The kubelet gives each Service of our namespace to us as NAME_SERVICE_HOST."""
    return hub.partition(":")[0].partition(".")[0].upper().replace("-", "_") + "_SERVICE_HOST"
