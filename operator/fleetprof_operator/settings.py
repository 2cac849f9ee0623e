"""The operator's settings, as one table."""

import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import yaml
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.settings import LogLevel, Setting, at_port, read_table, split_names
from fleetprof_api.request import read_quantity
from fleetprof_store.location import StoreLocation, parse_location

from fleetprof_operator.hub.bounds import AllBounds, parse_bounds
from fleetprof_operator.kubernetes.cluster import Json

_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----")
_MOST_AUTHORITY_BYTES: Final = 64 << 10
EXIT_CODES: Final = "0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own"


class OperatorAddresses(NamedTuple):
    """The addresses of the operator: for sidecars, for probes and Prometheus, for kubectl, for Alertmanager."""

    hub: HostPort = at_port(8443)
    http: HostPort = at_port(8080)
    figures: HostPort = at_port(8081)
    alerts: HostPort = at_port(8444)


def _read_authority(text: str) -> str:
    """The certificates of a file alone: what else such files hold is none of a sidecar's business."""
    path = Path(text)
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    certificates = "\n".join(_CERTIFICATE.findall(text))
    if not certificates:
        raise ValueError(f"{path} holds no certificate (-----BEGIN CERTIFICATE-----)")
    if len(certificates) > _MOST_AUTHORITY_BYTES:
        raise ValueError(
            f"{path} holds {len(certificates)} bytes of certificates, at most {_MOST_AUTHORITY_BYTES}, since every "
            "sidecar is sent them; name your own authorities only"
        )
    try:
        ssl.create_default_context(cadata=certificates)
    except ssl.SSLError as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    return certificates


def _read_bounds(text: str) -> AllBounds:
    return parse_bounds(_read_yaml(text))


def _read_amounts(text: str) -> Mapping[str, str]:
    amounts: dict[str, str] = {}
    for part in split_names(text):
        name, _, value = part.partition("=")
        try:
            read_quantity(value)
        except (ArithmeticError, ValueError, KeyError):
            raise ValueError(f"{part!r} must be RESOURCE=QUANTITY, e.g. memory=16Gi") from None
        amounts[name] = value
    return amounts


def _read_template(text: str) -> Json:
    template = _read_yaml(text)
    containers = template["spec"].get("containers") if _has_spec(template) else None
    if not isinstance(containers, list) or len(containers) != 1 or not isinstance(containers[0], dict):
        raise ValueError(f"{text} must be a pod template whose spec has one container")
    result: Json = template
    return result


def _has_spec(template: object) -> bool:
    return isinstance(template, dict) and isinstance(template.get("spec"), dict)


def _read_yaml(text: str) -> Any:
    try:
        return yaml.safe_load(Path(text).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{text} cannot be read: {error}") from None


def _read_report_url(text: str) -> str:
    try:
        text.format(namespace="", name="", uid="")
    except (KeyError, IndexError, ValueError):
        raise ValueError("may hold {namespace}, {name} and {uid} only") from None
    return text


Namespace = Annotated[str, Setting("the operator's own namespace; analyzer Jobs run there")]
Namespaces = Annotated[tuple[str, ...], Setting("serve these namespaces only; default: all", metavar="A,B")]
OwnerName = Annotated[
    str, Setting("this release; default: NAMESPACE/fleetprof", flag="owner", metavar="NAMESPACE/NAME")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the operator is told from outside. `namespaces` empty: all of them."""

    whole_store: Annotated[
        StoreLocation,
        Setting(
            "s3://bucket/prefix?endpoint=…&path_style=…&region=…", flag="store", read=parse_location, metavar="LOCATION"
        ),
    ]
    cluster: Annotated[
        str,
        Setting(
            "this cluster's name, where several share the store: it writes below clusters/NAME/ alone", metavar="NAME"
        ),
    ] = ""
    store_authority: Annotated[
        str,
        Setting(
            "certificates (PEM) that sidecars trust for uploads beside their own; our own: AWS_CA_BUNDLE",
            read=_read_authority,
            metavar="FILE",
        ),
    ] = ""
    namespace: Namespace
    namespaces: Namespaces = ()
    owner_name: OwnerName = ""
    leases: Annotated[
        tuple[str, ...], Setting("namespaces whose Lease `fleetprof` to hold; default: none, run alone", metavar="A,B")
    ] = ()
    identity: Annotated[str, Setting("this process's name in the Lease; default: the host's name")] = field(
        default_factory=socket.gethostname
    )
    advertise: Annotated[str, Setting("the hub's address, for replicas that stand by", metavar="HOST:PORT")] = ""
    listen: Annotated[OperatorAddresses, Setting("other addresses to listen at, e.g. hub=127.0.0.1:0")] = field(
        default_factory=OperatorAddresses
    )
    figures_account: Annotated[
        str,
        Setting(
            "service account of the operator's namespace whose tokens /figures takes; none: no /figures", metavar="NAME"
        ),
    ] = ""
    tls_secret: Annotated[str, Setting("Secret that the operator fills with its certificates")] = "fleetprof-tls"  # noqa: S105 - a name
    tls_names: Annotated[tuple[str, ...], Setting("names of hub and webhook in the certificate", metavar="A,B")] = ()
    tls_directory: Annotated[
        Path | None, Setting("certificates that somebody else makes (tls.crt, tls.key)", metavar="DIR")
    ] = None
    requester_guard: Annotated[
        str, Setting("object of the API that keeps users from forging requesters", metavar="PATH")
    ] = ""
    account: Annotated[
        str, Setting("service account that we run as, by which we know our own requests", metavar="NAME")
    ] = ""
    analyzer_pod: Annotated[
        Json | None,
        Setting("the analyzer Jobs' pod template, YAML; none: no reports", read=_read_template, metavar="FILE"),
    ] = None
    analysis_deadline_seconds: Annotated[int, Setting("how long one analyzer Job may take", least=60, most=86400)] = (
        1800
    )
    analysis_max_parallelism: Annotated[int, Setting("pods of one analyzer Job at a time", least=1, most=1000)] = 32
    analysis_max_resources: Annotated[
        Mapping[str, str],
        Setting(
            "the most that a request may ask for a pod of its analysis; resources not named have no bound",
            read=_read_amounts,
            metavar="cpu=4,memory=16Gi",
        ),
    ] = field(default_factory=dict)
    max_analyses_per_namespace: Annotated[int, Setting("analyses of one namespace at a time", least=1, most=1000)] = 4
    telemetry_interval_seconds: Annotated[
        int, Setting("seconds between two reports of one sidecar; 0: no telemetry", least=0, most=600)
    ] = 5
    max_captures: Annotated[int, Setting("captures under way at a time", least=1, most=10000)] = 200
    max_captures_per_namespace: Annotated[int, Setting("captures of one namespace under way", least=1, most=10000)] = 20
    bounds: Annotated[
        AllBounds,
        Setting("what requests may ask for, by namespace, YAML; none: no bounds", read=_read_bounds, metavar="FILE"),
    ] = field(default_factory=AllBounds)
    report_url: Annotated[
        str,
        Setting("address of a report, with {namespace}, {name} and {uid} put in", read=_read_report_url, metavar="URL"),
    ] = ""
    alerts_token_file: Annotated[
        Path | None, Setting("the bearer token that Alertmanager must show; none: no receiver", metavar="FILE")
    ] = None
    notifications: Annotated[
        Path | None,
        Setting("url, key and template of the webhook that is called after policies' captures", metavar="DIR"),
    ] = None
    sidecar_patience_seconds: Annotated[
        int,
        Setting(
            "how long pods wait for their sidecar to start before they go on without; 0: for good", least=0, most=86400
        ),
    ] = 0
    log_level: LogLevel = "info"

    def __post_init__(self) -> None:
        try:
            self.whole_store.of_cluster(self.cluster)
        except ValueError as error:
            raise ValueError(f"--store: {error}") from None

    @property
    def store(self) -> StoreLocation:
        """The part of the store that is this cluster's."""
        return self.whole_store.of_cluster(self.cluster)

    @property
    def owner(self) -> str:
        """NAMESPACE/NAME of this release."""
        return name_owner(self.owner_name, self.namespace)

    @property
    def account_name(self) -> str:
        """The user that the API server knows us as; "" when it is not told."""
        return f"system:serviceaccount:{self.namespace}:{self.account}" if self.account else ""


def name_owner(given: str, namespace: str) -> str:
    """NAMESPACE/NAME of a release in that namespace."""
    return given or f"{namespace}/fleetprof"


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    return read_table(
        Settings,
        arguments,
        environment,
        program="fleetprof-operator",
        description="Turns ProfileRequests into captures and reports.",
        exit_codes=EXIT_CODES,
    )
