"""`fleetprof-certificates`: keeps the webhook's certificate, and has the API server trust it. It does nothing else.

A process with a service account of its own, so that the right to change the webhook's configuration is nobody else's:
who holds it could have the API server show them every pod of the cluster. It hears the kubelet's probes only.

Guarantees: SIGTERM ends it at once with exit code 0.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetprof_api.process.address import HostPort
from fleetprof_api.process.settings import SettingsParser, split_names

from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.web.probes import serve_probes


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSettings:
    """Everything that the process is told from outside."""

    namespace: str
    tls_secret: str
    tls_names: tuple[str, ...]
    webhook_configuration: str
    http_port: int
    log_level: str


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> CertificateSettings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    parser = SettingsParser(
        "fleetprof-certificates",
        "Keeps the webhook's certificate, and has the API server trust it.",
        environment,
        exit_codes="0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own",
    )
    parser.setting("namespace", required=True, help="where the Secret is")
    parser.setting("tls-secret", required=True, help="the Secret; it must exist")
    parser.setting("tls-names", required=True, metavar="A,B", help="names of the webhook in the certificate")
    parser.setting("webhook-configuration", required=True, metavar="NAME", help="MutatingWebhookConfiguration to fill")
    parser.setting("http-port", default=8080, type=int, metavar="PORT", help="/healthz and /readyz")
    parser.log_level()
    given = parser.parse_args(arguments)
    if not 0 <= given.http_port <= 65535:
        parser.error(f"--http-port: must be from 0 to 65535, got {given.http_port}")
    return CertificateSettings(
        namespace=given.namespace,
        tls_secret=given.tls_secret,
        tls_names=split_names(given.tls_names),
        webhook_configuration=given.webhook_configuration,
        http_port=given.http_port,
        log_level=given.log_level,
    )


async def _keep(settings: CertificateSettings) -> None:
    cluster = await Cluster.connect()
    keeper = CertificateKeeper(
        cluster,
        namespace=settings.namespace,
        secret=settings.tls_secret,
        names=settings.tls_names,
        webhook_configuration=settings.webhook_configuration,
    )
    listen = HostPort("0.0.0.0", settings.http_port)  # noqa: S104 - the kubelet asks at the pod's address
    probes = await serve_probes(listen, lambda: keeper.trouble)
    keeping = asyncio.create_task(keeper.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, keeping.cancel)
    try:
        await asyncio.gather(keeping, return_exceptions=True)
    finally:
        await probes.close()
        await cluster.close()


def main() -> None:
    """Keeps certificates until SIGTERM or SIGINT."""
    settings = read_settings(sys.argv[1:])
    set_up_logging(settings.log_level)
    asyncio.run(_keep(settings))


if __name__ == "__main__":
    main()
