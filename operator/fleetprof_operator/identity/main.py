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
from typing import Annotated, Final

from fleetprof_api.process.address import HostPort
from fleetprof_api.process.settings import LogLevel, Setting, read_table

from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.web.probes import serve_probes

_PROBES: Final = HostPort("0.0.0.0", 8080)  # noqa: S104 - the kubelet asks at the pod's address


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSettings:
    """Everything that the process is told from outside."""

    namespace: Annotated[str, Setting("where the Secret is")]
    tls_secret: Annotated[str, Setting("the Secret; it must exist")]
    tls_names: Annotated[tuple[str, ...], Setting("names of the webhook in the certificate", metavar="A,B")]
    webhook_configuration: Annotated[str, Setting("MutatingWebhookConfiguration to fill", metavar="NAME")]
    log_level: LogLevel = "info"


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> CertificateSettings:
    """The settings. Ends the process with exit code 2 and a message when they are wrong, as argparse does."""
    return read_table(
        CertificateSettings,
        arguments,
        environment,
        program="fleetprof-certificates",
        description="Keeps the webhook's certificate, and has the API server trust it.",
        exit_codes="0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 1 an error of its own",
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
    probes = await serve_probes(_PROBES, lambda: keeper.trouble)
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
