"""The operator's settings: flags, each also as an environment variable FLEETPROF_<FLAG>, checked as a whole."""

import argparse
import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from fleetprof_api.process.address import HostPort, parse_host_port
from fleetprof_api.process.settings import SettingsParser, split_names
from fleetprof_api.request import read_quantity
from fleetprof_store.location import StoreLocation, parse_location

from fleetprof_operator.hub.bounds import AllBounds, parse_bounds
from fleetprof_operator.kubernetes.cluster import Json

_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----")
_MOST_AUTHORITY_BYTES: Final = 64 << 10
EXIT_CODES: Final = "0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the operator is told from outside. `namespaces` empty: all of them."""

    store: StoreLocation
    store_authority: str
    namespace: str
    namespaces: tuple[str, ...]
    owner: str
    leases: tuple[str, ...]
    identity: str
    advertise: str
    hub_listen: HostPort
    http_listen: HostPort
    figures_listen: HostPort
    figures_account: str
    tls_secret: str
    tls_names: tuple[str, ...]
    tls_directory: Path | None
    requester_guard: str
    account_name: str
    analyzer_pod: Json | None
    analysis_deadline_seconds: int
    analysis_ttl_seconds: int
    analysis_history: int
    analysis_max_parallelism: int
    analysis_max_resources: Mapping[str, str]
    max_analyses_per_namespace: int
    telemetry_interval_seconds: int
    max_captures: int
    max_captures_per_namespace: int
    bounds: AllBounds
    report_url: str
    alerts_listen: HostPort
    alerts_token_file: Path | None
    notifications: Path | None
    sidecar_patience_seconds: int
    log_level: str


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    parser = SettingsParser(
        "fleetprof-operator", "Turns ProfileRequests into captures and reports.", environment, exit_codes=EXIT_CODES
    )
    parser.setting(
        "store", required=True, metavar="LOCATION", help="s3://bucket/prefix?endpoint=…&path_style=…&region=…"
    )
    parser.setting(
        "cluster",
        default="",
        metavar="NAME",
        help="this cluster's name, where several share the store: it writes below clusters/NAME/ alone",
    )
    parser.setting(
        "store-authority",
        metavar="FILE",
        help="certificates (PEM) that sidecars trust for uploads beside their own; our own: AWS_CA_BUNDLE",
    )
    parser.setting("namespace", required=True, help="the operator's own namespace; analyzer Jobs run there")
    parser.setting("namespaces", default="", metavar="A,B", help="serve these namespaces only; default: all")
    parser.setting("owner", default="", metavar="NAMESPACE/NAME", help="this release; default: NAMESPACE/fleetprof")
    parser.setting(
        "leases", default="", metavar="A,B", help="namespaces whose Lease `fleetprof` to hold; default: none, run alone"
    )
    parser.setting("identity", default=socket.gethostname(), help="this process's name in the Lease")
    parser.setting("advertise", default="", metavar="HOST:PORT", help="the hub's address, for replicas that stand by")
    parser.setting("hub-listen", default="0.0.0.0:8443", metavar="HOST:PORT", help="where sidecars connect")
    parser.setting("http-listen", default="0.0.0.0:8080", metavar="HOST:PORT", help="/metrics, /healthz, /readyz")
    parser.setting("figures-listen", default="0.0.0.0:8081", metavar="HOST:PORT", help="/figures, for kubectl")
    parser.setting(
        "figures-account",
        default="",
        metavar="NAME",
        help="service account of the operator's namespace whose tokens /figures takes; none: no /figures",
    )
    parser.setting("tls-secret", default="fleetprof-tls", help="Secret that the operator fills with its certificates")
    parser.setting("tls-names", default="", metavar="A,B", help="names of hub and webhook in the certificate")
    parser.setting("tls-directory", metavar="DIR", help="certificates that somebody else makes (tls.crt, tls.key)")
    parser.setting(
        "requester-guard", default="", metavar="PATH", help="object of the API that keeps users from forging requesters"
    )
    parser.setting(
        "account", default="", metavar="NAME", help="service account that we run as, by which we know our own requests"
    )
    parser.setting("analyzer-pod", metavar="FILE", help="the analyzer Jobs' pod template, YAML; none: no reports")
    parser.setting("analysis-deadline-seconds", default=1800, type=int, help="how long one analyzer Job may take")
    parser.setting(
        "analysis-ttl-seconds", default=3600, type=int, help="how long a finished analyzer Job is kept, for its log"
    )
    parser.setting("analysis-history", default=5, type=int, help="the most finished analyzer Jobs that are kept")
    parser.setting("analysis-max-parallelism", default=32, type=int, help="pods of one analyzer Job at a time")
    parser.setting(
        "analysis-max-resources",
        default="",
        metavar="cpu=4,memory=16Gi",
        help="the most that a request may ask for a pod of its analysis; resources that are not named have no bound",
    )
    parser.setting("max-analyses-per-namespace", default=4, type=int, help="analyses of one namespace at a time")
    parser.setting(
        "telemetry-interval-seconds",
        default=5,
        type=int,
        help="seconds between two reports of one sidecar; 0: no telemetry",
    )
    parser.setting("max-captures", default=200, type=int, help="captures under way at a time")
    parser.setting("max-captures-per-namespace", default=20, type=int, help="captures of one namespace under way")
    parser.setting("bounds", metavar="FILE", help="what requests may ask for, by namespace, YAML; none: no bounds")
    parser.setting(
        "report-url", default="", metavar="URL", help="address of a report, with {namespace}, {name} and {uid} put in"
    )
    parser.setting("alerts-listen", default="0.0.0.0:8444", metavar="HOST:PORT", help="where Alertmanager calls")
    parser.setting(
        "alerts-token-file", metavar="FILE", help="the bearer token that Alertmanager must show; none: no receiver"
    )
    parser.setting(
        "notifications",
        metavar="DIR",
        help="url, key and template of the webhook that is called after policies' captures",
    )
    parser.setting(
        "sidecar-patience-seconds",
        default=0,
        type=int,
        help="how long pods wait for their sidecar to start before they go on without; 0: for good",
    )
    parser.log_level()
    given = parser.parse_args(arguments)
    try:
        return _check(given)
    except ValueError as problem:
        parser.error(str(problem))


def _check(given: argparse.Namespace) -> Settings:
    try:
        store = parse_location(given.store).of_cluster(given.cluster)
    except ValueError as error:
        raise ValueError(f"--store: {error}") from None
    for flag, least, most in (
        ("analysis_deadline_seconds", 60, 86_400),
        ("analysis_ttl_seconds", 60, 604_800),
        ("analysis_history", 0, 1000),
        ("analysis_max_parallelism", 1, 1000),
        ("max_analyses_per_namespace", 1, 1000),
        ("telemetry_interval_seconds", 0, 600),
        ("max_captures", 1, 10_000),
        ("max_captures_per_namespace", 1, 10_000),
        ("sidecar_patience_seconds", 0, 86_400),
    ):
        value = getattr(given, flag)
        if not least <= value <= most:
            raise ValueError(f"--{flag.replace('_', '-')}: must be from {least} to {most}, got {value}")
    try:
        given.report_url.format(namespace="", name="", uid="")
    except (KeyError, IndexError, ValueError):
        raise ValueError("--report-url: may hold {namespace}, {name} and {uid} only") from None
    return Settings(
        store=store,
        store_authority=_read_authority(Path(given.store_authority)) if given.store_authority else "",
        namespace=given.namespace,
        namespaces=split_names(given.namespaces),
        owner=given.owner or f"{given.namespace}/fleetprof",
        leases=split_names(given.leases),
        identity=given.identity,
        advertise=given.advertise,
        hub_listen=_read_address("--hub-listen", given.hub_listen),
        http_listen=_read_address("--http-listen", given.http_listen),
        figures_listen=_read_address("--figures-listen", given.figures_listen),
        figures_account=given.figures_account,
        tls_secret=given.tls_secret,
        tls_names=split_names(given.tls_names),
        tls_directory=Path(given.tls_directory) if given.tls_directory else None,
        requester_guard=given.requester_guard,
        account_name=f"system:serviceaccount:{given.namespace}:{given.account}" if given.account else "",
        analyzer_pod=_read_template(Path(given.analyzer_pod)) if given.analyzer_pod else None,
        analysis_deadline_seconds=given.analysis_deadline_seconds,
        analysis_ttl_seconds=given.analysis_ttl_seconds,
        analysis_history=given.analysis_history,
        analysis_max_parallelism=given.analysis_max_parallelism,
        analysis_max_resources=_read_amounts(given.analysis_max_resources),
        max_analyses_per_namespace=given.max_analyses_per_namespace,
        telemetry_interval_seconds=given.telemetry_interval_seconds,
        max_captures=given.max_captures,
        max_captures_per_namespace=given.max_captures_per_namespace,
        bounds=_read_bounds(Path(given.bounds)) if given.bounds else AllBounds(),
        report_url=given.report_url,
        alerts_listen=_read_address("--alerts-listen", given.alerts_listen),
        alerts_token_file=Path(given.alerts_token_file) if given.alerts_token_file else None,
        notifications=Path(given.notifications) if given.notifications else None,
        sidecar_patience_seconds=given.sidecar_patience_seconds,
        log_level=given.log_level,
    )


def _read_address(flag: str, text: str) -> HostPort:
    try:
        return parse_host_port(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def _read_authority(path: Path) -> str:
    """The certificates alone: what else such files hold is none of a sidecar's business."""
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise ValueError(f"--store-authority: {path} cannot be read: {error}") from None
    certificates = "\n".join(_CERTIFICATE.findall(text))
    if not certificates:
        raise ValueError(f"--store-authority: {path} holds no certificate (-----BEGIN CERTIFICATE-----)")
    if len(certificates) > _MOST_AUTHORITY_BYTES:
        raise ValueError(
            f"--store-authority: {path} holds {len(certificates)} bytes of certificates, at most "
            f"{_MOST_AUTHORITY_BYTES}, since every sidecar is sent them; name your own authorities only"
        )
    try:
        ssl.create_default_context(cadata=certificates)
    except ssl.SSLError as error:
        raise ValueError(f"--store-authority: {path} cannot be used: {error}") from None
    return certificates


def _read_bounds(path: Path) -> AllBounds:
    try:
        return parse_bounds(yaml.safe_load(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        raise ValueError(f"--bounds: {path} cannot be read: {error}") from None


def _read_amounts(text: str) -> Mapping[str, str]:
    amounts: dict[str, str] = {}
    for part in split_names(text):
        name, _, value = part.partition("=")
        try:
            read_quantity(value)
        except (ArithmeticError, ValueError, KeyError):
            raise ValueError(
                f"--analysis-max-resources: {part!r} must be RESOURCE=QUANTITY, e.g. memory=16Gi"
            ) from None
        amounts[name] = value
    return amounts


def _read_template(path: Path) -> Json:
    try:
        template = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"--analyzer-pod: {path} cannot be read: {error}") from None
    containers = template["spec"].get("containers") if _has_spec(template) else None
    if not isinstance(containers, list) or len(containers) != 1 or not isinstance(containers[0], dict):
        raise ValueError(f"--analyzer-pod: {path} must be a pod template whose spec has one container")
    result: Json = template
    return result


def _has_spec(template: object) -> bool:
    return isinstance(template, dict) and isinstance(template.get("spec"), dict)
