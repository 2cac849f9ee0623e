"""The settings of `fleetprof-webui`: flags, each also an environment variable FLEETPROF_<FLAG>, checked as a whole.

Guarantees: without a configured way of knowing who asks there are no settings, and so no service.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fleetprof_api.process.address import HostPort, is_loopback, parse_host_port
from fleetprof_api.process.settings import SettingsParser, split_names
from fleetprof_store.location import StoreLocation, parse_location

from fleetprof_webui.access.cluster import Writes
from fleetprof_webui.access.proxy import ProxyKeys
from fleetprof_webui.access.sign_in import Provider
from fleetprof_webui.access.subject import ClaimNames

EXIT_CODES: Final = "0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own"
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_NO_WAY: Final = (
    "nothing says who may look: set --kubectl-sign-in (people come by kubectl fleetprof ui), or "
    "--oidc-issuer-url and --oidc-client-id, or --proxy-jwt-header, --proxy-jwks-url, "
    "--proxy-jwt-issuer and --proxy-jwt-audience (docs/webui-access.md); this service is never open to everybody"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the service is told from outside. One of `provider`, `proxy` and
    `kubectl_sign_in` is there; `public_url` is "" where people come by kubectl alone."""

    store: StoreLocation
    cluster: str
    catalog_url: str
    public_url: str
    listen: HostPort
    http_listen: HostPort
    metrics_listen: HostPort
    look_every_s: float
    provider: Provider | None
    proxy: ProxyKeys | None
    kubectl_sign_in: bool
    names: ClaimNames
    writes: Writes
    signs_traces: bool
    api_address: str
    api_ca_file: Path | None
    api_token_file: Path
    log_level: str


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    parser = SettingsParser("fleetprof-webui", "The web UI in a cluster.", environment, exit_codes=EXIT_CODES)
    parser.setting("store", required=True, metavar="LOCATION", help="s3://bucket/prefix?endpoint=…, as the operator's")
    parser.setting(
        "cluster",
        default="",
        metavar="NAME",
        help="as the operator's; captures of the other clusters in the store are shown to whom that is granted",
    )
    parser.setting("catalog", required=True, metavar="URL", help="postgresql://USER@HOST/NAME or sqlite:///FILE")
    parser.setting(
        "public-url",
        default="",
        metavar="URL",
        help="the address by which browsers know this service; not needed with --kubectl-sign-in alone",
    )
    parser.switch("kubectl-sign-in", help="let people in who come by `kubectl fleetprof ui` with their own token")
    parser.setting(
        "listen", default="0.0.0.0:8770", metavar="HOST:PORT", help="where browsers, or their proxy, connect"
    )
    parser.setting("http-listen", default="0.0.0.0:8080", metavar="HOST:PORT", help="/healthz, /readyz")
    parser.setting("metrics-listen", default="0.0.0.0:8082", metavar="HOST:PORT", help="/metrics")
    parser.setting("look-every-seconds", default=10, type=int, help="how often the catalog looks at the store")
    parser.setting("oidc-issuer-url", metavar="URL", help="identity provider, as the API server's --oidc-issuer-url")
    parser.setting("oidc-client-id", default="", help="what this service is called there")
    parser.setting("oidc-client-secret-file", metavar="FILE", help="its secret; none: a public client with PKCE alone")
    parser.setting("oidc-scopes", default="openid,email,groups", metavar="A,B", help="what is asked for; openid always")
    parser.setting("proxy-jwt-header", metavar="NAME", help="header in which an authenticating proxy sends its token")
    parser.setting("proxy-jwks-url", default="", metavar="URL", help="the keys with which the proxy signs")
    parser.setting("proxy-jwt-issuer", default="", help="claim iss of the proxy's token")
    parser.setting("proxy-jwt-audience", default="", help="claim aud of the proxy's token")
    parser.setting("identity-ca-file", metavar="FILE", help="authority of the provider's or proxy's certificate")
    parser.setting("username-claim", default="sub", help="as the API server's --oidc-username-claim")
    parser.setting("username-prefix", default="", help="as --oidc-username-prefix; -: none")
    parser.setting("groups-claim", default="", help="as --oidc-groups-claim")
    parser.setting("groups-prefix", default="", help="as --oidc-groups-prefix")
    parser.setting(
        "writes",
        default="none",
        choices=("none", "token", "impersonate"),
        help="whether and how people ask for captures: not here, with their own token, or by impersonating them",
    )
    parser.setting(
        "trace-downloads",
        default="auto",
        choices=("auto", "signed", "service"),
        help="how browsers get traces: signed: from the store, by an address signed for five minutes; service: through "
        "this service; auto: signed unless the store has an endpoint of its own",
    )
    parser.setting(
        "api-server", default=_find_api_server(environment), metavar="URL", help="default: the cluster's own"
    )
    parser.setting("api-server-ca-file", default=f"{_ACCOUNT}/ca.crt", metavar="FILE", help="its authority")
    parser.setting(
        "api-server-token-file", default=f"{_ACCOUNT}/token", metavar="FILE", help="this service's own token"
    )
    parser.log_level()
    given = parser.parse_args(arguments)
    try:
        return _check(given)
    except ValueError as problem:
        parser.error(str(problem))


def _check(given: argparse.Namespace) -> Settings:
    provider, proxy = _read_provider(given), _read_proxy(given)
    if provider is None and proxy is None and not given.kubectl_sign_in:
        raise ValueError(_NO_WAY)
    if provider is not None and proxy is not None:
        raise ValueError("--oidc-issuer-url and --proxy-jwt-header exclude each other")
    if not given.public_url and (provider is not None or proxy is not None):
        raise ValueError("--public-url: must be set: it is where people come back to when they have signed in")
    try:
        store = parse_location(given.store)
        store.of_cluster(given.cluster)
    except ValueError as error:
        raise ValueError(f"--store: {error}") from None
    if not given.api_server.startswith("https://"):
        raise ValueError("--api-server: must be an https:// address; within a cluster it need not be given")
    if not 1 <= given.look_every_seconds <= 3600:
        raise ValueError("--look-every-seconds: must be from 1 to 3600")
    return Settings(
        store=store,
        cluster=given.cluster,
        catalog_url=given.catalog,
        public_url=_read_public_url(given.public_url) if given.public_url else "",
        listen=_read_address("--listen", given.listen),
        http_listen=_read_address("--http-listen", given.http_listen),
        metrics_listen=_read_address("--metrics-listen", given.metrics_listen),
        look_every_s=float(given.look_every_seconds),
        provider=provider,
        proxy=proxy,
        kubectl_sign_in=given.kubectl_sign_in,
        names=ClaimNames(
            issuer=provider.issuer if provider else given.proxy_jwt_issuer,
            username_claim=given.username_claim,
            username_prefix=given.username_prefix,
            groups_claim=given.groups_claim,
            groups_prefix=given.groups_prefix,
        ),
        writes=given.writes,
        signs_traces=_signs_traces(given.trace_downloads, store),
        api_address=given.api_server,
        api_ca_file=Path(given.api_server_ca_file),
        api_token_file=Path(given.api_server_token_file),
        log_level=given.log_level,
    )


def _read_provider(given: argparse.Namespace) -> Provider | None:
    if not given.oidc_issuer_url:
        return None
    _check_https("--oidc-issuer-url", given.oidc_issuer_url)
    if not given.oidc_client_id:
        raise ValueError("--oidc-client-id: must be set beside --oidc-issuer-url")
    scopes = split_names(given.oidc_scopes)
    return Provider(
        issuer=given.oidc_issuer_url,
        client_id=given.oidc_client_id,
        client_secret=_read_secret(given.oidc_client_secret_file),
        scopes=scopes if "openid" in scopes else ("openid", *scopes),
        ca_file=Path(given.identity_ca_file) if given.identity_ca_file else None,
    )


def _read_proxy(given: argparse.Namespace) -> ProxyKeys | None:
    if not given.proxy_jwt_header:
        return None
    for flag in ("proxy_jwks_url", "proxy_jwt_issuer", "proxy_jwt_audience"):
        if not getattr(given, flag):
            raise ValueError(
                f"--{flag.replace('_', '-')}: must be set beside --proxy-jwt-header: a header without proof is refused"
            )
    _check_https("--proxy-jwks-url", given.proxy_jwks_url)
    return ProxyKeys(
        header=given.proxy_jwt_header,
        keys_url=given.proxy_jwks_url,
        issuer=given.proxy_jwt_issuer,
        audience=given.proxy_jwt_audience,
        ca_file=Path(given.identity_ca_file) if given.identity_ca_file else None,
    )


def _signs_traces(wanted: str, store: StoreLocation) -> bool:
    """Amazon's S3 is where browsers reach it; an endpoint may be known within the cluster alone."""
    return wanted == "signed" or (wanted == "auto" and bool(store.bucket) and not store.endpoint)


def _read_secret(file: str | None) -> str:
    try:
        return Path(file).read_text().strip() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--oidc-client-secret-file: {file} cannot be read: {error}") from None


def _read_public_url(text: str) -> str:
    _check_https("--public-url", text)
    parts = urlsplit(text)
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise ValueError(
            f"--public-url: must be a scheme and a host alone, such as https://fleetprof.example.com, not {text}"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _check_https(flag: str, text: str) -> None:
    """Plain HTTP is for this machine alone: there a browser keeps the session's cookie safe as well."""
    parts = urlsplit(text)
    local = parts.scheme == "http" and is_loopback(f"{parts.hostname}:{parts.port or 80}")
    if not parts.hostname or not (parts.scheme == "https" or local):
        raise ValueError(f"{flag}: must be an https:// address (http:// on loopback only), not {text}")


def _read_address(flag: str, text: str) -> HostPort:
    try:
        return parse_host_port(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def _find_api_server(environment: Mapping[str, str]) -> str:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{HostPort(host, int(port)).text()}" if host and port.isdecimal() else ""
