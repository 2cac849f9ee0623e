"""The sidecar's settings, as one table."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

from fleetprof_api.process.address import parse_host_port
from fleetprof_api.process.settings import LogLevel, Setting, read_table, split_names

from fleetprof_sidecar.hub.address import Address, HubAddress, LocalHub

_WORKLOAD: Final = re.compile(
    r"(?P<api_version>[a-z0-9.-]+(?:/v[0-9a-z]+)?)/(?P<kind>[A-Z][A-Za-z0-9]*)/(?P<name>[a-z0-9.-]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOwner:
    """The owner of the pod, e.g. batch/v1, Job, llama."""

    api_version: str
    kind: str
    name: str


def _read_workload(text: str) -> PodOwner:
    match = _WORKLOAD.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} must be APIVERSION/KIND/NAME, e.g. batch/v1/Job/llama")
    return PodOwner(api_version=match["api_version"], kind=match["kind"], name=match["name"])


def _read_store_address(text: str) -> dict[str, str]:
    name, equals, address = text.partition("=")
    try:
        ip_address(address)
    except ValueError:
        equals = ""
    if not name or not equals:
        raise ValueError(f"{text!r} must be NAME=IP, e.g. fleetprof-store.tools.svc=10.0.0.7")
    return {name: address}


def _read_labels(text: str) -> dict[str, str]:
    labels = {}
    for part in split_names(text):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise ValueError(f"{part!r} must be KEY=VALUE")
        labels[key] = value
    return labels


def _read_hub(text: str) -> str:
    parse_host_port(text, least_port=1)
    return text


def _read_dcgm_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("must be http:// or https://, such as http://10.0.0.7:9400/metrics")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the sidecar is told from outside."""

    directory: Annotated[Path, Setting("the socket directory shared with the training processes", metavar="DIR")]
    agent_directory: Annotated[
        Path | None, Setting("where the agent is put; default: agent/ in --directory", metavar="DIR")
    ] = None
    spool: Annotated[Path, Setting("private directory for finished traces and the journal", metavar="DIR")]
    state: Annotated[
        Path | None, Setting("local mode's state directory, which tells where the hub is", metavar="DIR")
    ] = None
    target: Annotated[
        str,
        Setting("without --state: where the hub listens, over TLS", flag="hub", read=_read_hub, metavar="HOST:PORT"),
    ] = ""
    token_file: Annotated[Path | None, Setting("holds the bearer token; read again on each dial", metavar="FILE")] = (
        None
    )
    ca_file: Annotated[
        Path | None, Setting("certificate authority of the hub; default: gRPC's own list", metavar="FILE")
    ] = None
    hub_name: Annotated[str, Setting("the hub's name in its certificate, if HOST is not it", metavar="NAME")] = ""
    store_addresses: Annotated[
        dict[str, str],
        Setting(
            "where the object store NAME is, if its name cannot be resolved here",
            flag="store-address",
            read=_read_store_address,
            metavar="NAME=IP",
        ),
    ] = field(default_factory=dict)
    namespace: Annotated[str, Setting("namespace of the pod")] = "default"
    pod_name: Annotated[str, Setting()] = ""
    pod_uid: Annotated[str, Setting()] = ""
    node_name: Annotated[str, Setting()] = ""
    workload: Annotated[
        PodOwner | None,
        Setting(
            "what the pod belongs to, e.g. batch/v1/Job/llama", read=_read_workload, metavar="APIVERSION/KIND/NAME"
        ),
    ] = None
    labels: Annotated[
        dict[str, str], Setting("labels of the pod", flag="label", read=_read_labels, metavar="K=V,…")
    ] = field(default_factory=dict)
    labels_file: Annotated[
        Path | None, Setting("labels of the pod as Kubernetes' downward API writes them", metavar="FILE")
    ] = None
    ends_with_pod: Annotated[bool, Setting("the spool goes with this process: say what is lost with it")] = False
    command_launches: Annotated[
        bool, Setting("the training container, which we cannot see into, runs torchrun or its like")
    ] = False
    storage_limit_bytes: Annotated[
        int, Setting("most bytes of disk that the pod as a whole may take; 0: any", least=0)
    ] = 0
    dcgm_url: Annotated[
        str,
        Setting(
            "dcgm-exporter of this node, for figures that the agent cannot read", read=_read_dcgm_url, metavar="URL"
        ),
    ] = ""
    grace_seconds: Annotated[float, Setting("how long SIGTERM waits for uploads", least=0, most=3600)] = 20.0
    log_level: LogLevel = "info"

    def __post_init__(self) -> None:
        _ = self.hub

    @property
    def hub(self) -> Address:
        """The hub's address. Raises ValueError."""
        if self.state:
            if self.target:
                raise ValueError("--state and --hub exclude each other: the state directory tells where the hub is")
            return LocalHub(self.state)
        if not self.target or not self.token_file:
            raise ValueError("--hub and --token-file are needed, or --state alone")
        return HubAddress(target=self.target, token_file=self.token_file, ca_file=self.ca_file, name=self.hub_name)


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    return read_table(
        Settings,
        arguments,
        environment,
        program="fleetprof-sidecar",
        description="Captures traces of the PyTorch training processes that share a socket directory with it.",
        exit_codes="0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 3 the socket directory or spool is unusable "
        "or taken by another sidecar; 1 an error of its own",
    )
