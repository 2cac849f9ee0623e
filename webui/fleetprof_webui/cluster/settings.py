"""The settings of `fleetprof-webui`, as one table.

Guarantees: without a configured way of knowing who asks there are no settings, and so no service.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from fleetprof_api.process.address import HostPort, is_loopback
from fleetprof_api.process.settings import LogLevel, Setting, at_port, read_table, split_names
from fleetprof_store.location import StoreLocation, parse_location

from fleetprof_webui.access.cluster import Writes
from fleetprof_webui.access.proxy import ProxyKeys
from fleetprof_webui.access.sign_in import Provider
from fleetprof_webui.access.subject import ClaimNames

EXIT_CODES: Final = "0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own"
_NO_WAY: Final = (
    "nothing says who may look: set --kubectl-sign-in (people come by kubectl fleetprof ui), or "
    "--oidc-issuer-url and --oidc-client-id, or --proxy-jwt-header, --proxy-jwks-url, "
    "--proxy-jwt-issuer and --proxy-jwt-audience (docs/webui-access.md); this service is never open to everybody"
)


class WebUiAddresses(NamedTuple):
    """The addresses of the service: for browsers or their proxy, for probes, for Prometheus."""

    pages: HostPort = at_port(8770)
    http: HostPort = at_port(8080)
    metrics: HostPort = at_port(8082)


def _read_https(text: str) -> str:
    """An address. Plain HTTP is for this machine alone: there a browser keeps the session's cookie safe as well."""
    parts = urlsplit(text)
    local = parts.scheme == "http" and is_loopback(f"{parts.hostname}:{parts.port or 80}")
    if not parts.hostname or not (parts.scheme == "https" or local):
        raise ValueError(f"must be an https:// address (http:// on loopback only), not {text}")
    return text


def _read_public_url(text: str) -> str:
    parts = urlsplit(_read_https(text))
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise ValueError(f"must be a scheme and a host alone, such as https://fleetprof.example.com, not {text}")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _read_secret(text: str) -> str:
    try:
        return Path(text).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{text} cannot be read: {error}") from None


def _read_scopes(text: str) -> tuple[str, ...]:
    scopes = split_names(text)
    return scopes if "openid" in scopes else ("openid", *scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the service is told from outside. One of `provider`, `proxy` and
    `kubectl_sign_in` is there; `public_url` is "" where people come by kubectl alone."""

    store: Annotated[
        StoreLocation,
        Setting("s3://bucket/prefix?endpoint=…, as the operator's", read=parse_location, metavar="LOCATION"),
    ]
    cluster: Annotated[
        str,
        Setting(
            "as the operator's; captures of the other clusters in the store are shown to whom that is granted",
            metavar="NAME",
        ),
    ] = ""
    catalog: Annotated[str, Setting("postgresql://USER@HOST/NAME or sqlite:///FILE", metavar="URL")]
    public_url: Annotated[
        str,
        Setting(
            "the address by which browsers know this service; not needed with --kubectl-sign-in alone",
            read=_read_public_url,
            metavar="URL",
        ),
    ] = ""
    kubectl_sign_in: Annotated[
        bool, Setting("let people in who come by `kubectl fleetprof ui` with their own token")
    ] = False
    listen: Annotated[WebUiAddresses, Setting("other addresses to listen at, e.g. pages=127.0.0.1:8770")] = field(
        default_factory=WebUiAddresses
    )
    oidc_issuer_url: Annotated[
        str, Setting("identity provider, as the API server's --oidc-issuer-url", read=_read_https, metavar="URL")
    ] = ""
    oidc_client_id: Annotated[str, Setting("what this service is called there")] = ""
    oidc_client_secret: Annotated[
        str,
        Setting(
            "its secret; none: a public client with PKCE alone",
            flag="oidc-client-secret-file",
            read=_read_secret,
            metavar="FILE",
        ),
    ] = field(default="", repr=False)
    oidc_scopes: Annotated[
        tuple[str, ...], Setting("what is asked for; openid always", read=_read_scopes, metavar="A,B")
    ] = ("openid", "email", "groups")
    proxy_jwt_header: Annotated[
        str, Setting("header in which an authenticating proxy sends its token", metavar="NAME")
    ] = ""
    proxy_jwks_url: Annotated[str, Setting("the keys with which the proxy signs", read=_read_https, metavar="URL")] = ""
    proxy_jwt_issuer: Annotated[str, Setting("claim iss of the proxy's token")] = ""
    proxy_jwt_audience: Annotated[str, Setting("claim aud of the proxy's token")] = ""
    identity_ca_file: Annotated[
        Path | None, Setting("authority of the provider's or proxy's certificate", metavar="FILE")
    ] = None
    username_claim: Annotated[str, Setting("as the API server's --oidc-username-claim")] = "sub"
    username_prefix: Annotated[str, Setting("as --oidc-username-prefix; -: none")] = ""
    groups_claim: Annotated[str, Setting("as --oidc-groups-claim")] = ""
    groups_prefix: Annotated[str, Setting("as --oidc-groups-prefix")] = ""
    writes: Annotated[
        Writes,
        Setting("whether and how people ask for captures: not here, with their own token, or by impersonating them"),
    ] = "none"
    trace_downloads: Annotated[
        Literal["auto", "signed", "service"],
        Setting(
            "how browsers get traces: signed: from the store, by an address signed for five minutes; service: "
            "through this service; auto: signed unless the store has an endpoint of its own"
        ),
    ] = "auto"
    log_level: LogLevel = "info"

    def __post_init__(self) -> None:
        if self.provider is None and self.proxy is None and not self.kubectl_sign_in:
            raise ValueError(_NO_WAY)
        if self.provider is not None and self.proxy is not None:
            raise ValueError("--oidc-issuer-url and --proxy-jwt-header exclude each other")
        if not self.public_url and (self.provider is not None or self.proxy is not None):
            raise ValueError("--public-url: must be set: it is where people come back to when they have signed in")
        try:
            self.store.of_cluster(self.cluster)
        except ValueError as error:
            raise ValueError(f"--store: {error}") from None

    @property
    def provider(self) -> Provider | None:
        """The identity provider that people sign in to. Raises ValueError."""
        if not self.oidc_issuer_url:
            return None
        if not self.oidc_client_id:
            raise ValueError("--oidc-client-id: must be set beside --oidc-issuer-url")
        return Provider(
            issuer=self.oidc_issuer_url,
            client_id=self.oidc_client_id,
            client_secret=self.oidc_client_secret,
            scopes=self.oidc_scopes,
            ca_file=self.identity_ca_file,
        )

    @property
    def proxy(self) -> ProxyKeys | None:
        """The authenticating proxy that people come through. Raises ValueError."""
        if not self.proxy_jwt_header:
            return None
        for flag in ("proxy-jwks-url", "proxy-jwt-issuer", "proxy-jwt-audience"):
            if not getattr(self, flag.replace("-", "_")):
                raise ValueError(f"--{flag}: must be set beside --proxy-jwt-header: a header without proof is refused")
        return ProxyKeys(
            header=self.proxy_jwt_header,
            keys_url=self.proxy_jwks_url,
            issuer=self.proxy_jwt_issuer,
            audience=self.proxy_jwt_audience,
            ca_file=self.identity_ca_file,
        )

    @property
    def names(self) -> ClaimNames:
        """The claims that name people."""
        return ClaimNames(
            issuer=self.oidc_issuer_url or self.proxy_jwt_issuer,
            username_claim=self.username_claim,
            username_prefix=self.username_prefix,
            groups_claim=self.groups_claim,
            groups_prefix=self.groups_prefix,
        )

    @property
    def signs_traces(self) -> bool:
        """Tells if browsers get traces from the store: Amazon's is where they reach it, an endpoint may not be."""
        at_amazon = bool(self.store.bucket) and not self.store.endpoint
        return self.trace_downloads == "signed" or (self.trace_downloads == "auto" and at_amazon)


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    return read_table(
        Settings,
        arguments,
        environment,
        program="fleetprof-webui",
        description="The web UI in a cluster.",
        exit_codes=EXIT_CODES,
    )
