"""The sidecar's settings: flags, each also as an environment variable FLEETPROF_<FLAG>, checked as a whole."""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from fleetprof_api.process.address import parse_host_port
from fleetprof_api.process.settings import SettingsParser, split_names

from fleetprof_sidecar.hub.address import Address, HubAddress, LocalHub

_WORKLOAD: Final = re.compile(
    r"(?P<api_version>[a-z0-9.-]+(?:/v[0-9a-z]+)?)/(?P<kind>[A-Z][A-Za-z0-9]*)/(?P<name>[a-z0-9.-]+)"
)
_LEAST_SPOOL_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOwner:
    """The owner of the pod, e.g. batch/v1, Job, llama."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the sidecar is told from outside."""

    directory: Path
    spool: Path
    hub: Address
    agent_directory: Path | None = None
    namespace: str = "default"
    pod_name: str = ""
    pod_uid: str = ""
    node_name: str = ""
    workload: PodOwner | None = None
    store_addresses: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    labels_file: Path | None = None
    ends_with_pod: bool = False
    command_launches: bool = False
    spool_limit_bytes: int = 4 << 30
    storage_limit_bytes: int = 0
    grace_seconds: float = 20.0
    dcgm_url: str = ""
    log_level: str = "info"


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    parser = SettingsParser(
        "fleetprof-sidecar",
        "Captures traces of the PyTorch training processes that share a socket directory with it.",
        environment,
        exit_codes="0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 3 the socket directory or spool is unusable "
        "or taken by another sidecar; 1 an error of its own",
    )
    parser.setting(
        "directory", required=True, metavar="DIR", help="the socket directory shared with the training processes"
    )
    parser.setting("agent-directory", metavar="DIR", help="where the agent is put; default: agent/ in --directory")
    parser.setting("spool", required=True, metavar="DIR", help="private directory for finished traces and the journal")
    parser.setting("state", metavar="DIR", help="local mode's state directory, which tells where the hub is")
    parser.setting("hub", metavar="HOST:PORT", help="without --state: where the hub listens, over TLS")
    parser.setting("token-file", metavar="FILE", help="holds the bearer token; read again on each dial")
    parser.setting("ca-file", metavar="FILE", help="certificate authority of the hub; default: gRPC's own list")
    parser.setting("hub-name", default="", metavar="NAME", help="the hub's name in its certificate, if HOST is not it")
    parser.setting(
        "store-address", metavar="NAME=IP", help="where the object store NAME is, if its name cannot be resolved here"
    )
    parser.setting("namespace", default="default", help="namespace of the pod")
    parser.setting("pod-name", default="")
    parser.setting("pod-uid", default="")
    parser.setting("node-name", default="")
    parser.setting("workload", metavar="APIVERSION/KIND/NAME", help="what the pod belongs to, e.g. batch/v1/Job/llama")
    labels = split_names(environment.get("FLEETPROF_LABEL", ""))
    parser.add_argument(
        "--label", metavar="K=V", action="append", default=None, help="label of the pod; may be repeated (env: a,b)"
    )
    parser.setting("labels-file", metavar="FILE", help="labels of the pod as Kubernetes' downward API writes them")
    parser.switch("ends-with-pod", help="the spool goes with this process: say what is lost with it")
    parser.switch(
        "command-launches", help="the training container, which we cannot see into, runs torchrun or its like"
    )
    parser.setting("spool-limit-bytes", default=4 << 30, type=int, help="most bytes of finished traces on disk")
    parser.setting(
        "storage-limit-bytes", default=0, type=int, help="most bytes of disk that the pod as a whole may take; 0: any"
    )
    parser.setting(
        "dcgm-url", default="", metavar="URL", help="dcgm-exporter of this node, for figures that the agent cannot read"
    )
    parser.setting("grace-seconds", default=20.0, type=float, help="how long SIGTERM waits for uploads")
    parser.log_level()
    given = parser.parse_args(arguments)
    try:
        return _check(given, given.label if given.label is not None else labels)
    except ValueError as problem:
        parser.error(str(problem))


def _check(given: argparse.Namespace, labels: Sequence[str]) -> Settings:
    if given.spool_limit_bytes < _LEAST_SPOOL_BYTES:
        raise ValueError(f"--spool-limit-bytes: must be {_LEAST_SPOOL_BYTES} or more")
    if given.storage_limit_bytes < 0:
        raise ValueError("--storage-limit-bytes: must be 0 or more")
    if not 0 <= given.grace_seconds <= 3600:
        raise ValueError("--grace-seconds: must be from 0 to 3600")
    if given.dcgm_url and not given.dcgm_url.startswith(("http://", "https://")):
        raise ValueError("--dcgm-url: must be http:// or https://, such as http://10.0.0.7:9400/metrics")
    return Settings(
        directory=Path(given.directory),
        spool=Path(given.spool),
        hub=_read_address(given),
        agent_directory=Path(given.agent_directory) if given.agent_directory else None,
        namespace=given.namespace,
        pod_name=given.pod_name,
        pod_uid=given.pod_uid,
        node_name=given.node_name,
        store_addresses=dict([_read_store_address(given.store_address)]) if given.store_address else {},
        workload=_read_workload(given.workload) if given.workload else None,
        labels=dict(_read_label(item) for item in labels),
        labels_file=Path(given.labels_file) if given.labels_file else None,
        ends_with_pod=given.ends_with_pod,
        command_launches=given.command_launches,
        spool_limit_bytes=given.spool_limit_bytes,
        storage_limit_bytes=given.storage_limit_bytes,
        grace_seconds=given.grace_seconds,
        dcgm_url=given.dcgm_url,
        log_level=given.log_level,
    )


def _read_address(given: argparse.Namespace) -> Address:
    if given.state:
        if given.hub:
            raise ValueError("--state and --hub exclude each other: the state directory tells where the hub is")
        return LocalHub(Path(given.state))
    if not given.hub or not given.token_file:
        raise ValueError("--hub and --token-file are needed, or --state alone")
    try:
        parse_host_port(given.hub, least_port=1)
    except ValueError as error:
        raise ValueError(f"--hub: {error}") from None
    return HubAddress(
        target=given.hub,
        token_file=Path(given.token_file),
        ca_file=Path(given.ca_file) if given.ca_file else None,
        name=given.hub_name,
    )


def _read_store_address(text: str) -> tuple[str, str]:
    name, equals, address = text.partition("=")
    try:
        ip_address(address)
    except ValueError:
        equals = ""
    if not name or not equals:
        raise ValueError(f"--store-address: {text!r} must be NAME=IP, e.g. fleetprof-store.tools.svc=10.0.0.7")
    return name, address


def _read_workload(text: str) -> PodOwner:
    match = _WORKLOAD.fullmatch(text)
    if match is None:
        raise ValueError(f"--workload: {text!r} must be APIVERSION/KIND/NAME, e.g. batch/v1/Job/llama")
    return PodOwner(api_version=match["api_version"], kind=match["kind"], name=match["name"])


def _read_label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"--label: {text!r} must be KEY=VALUE")
    return key, value
