"""`fleetprof-operator`: settings, credentials and certificates of the real world around one `Operator`.

    fleetprof-operator            serves until SIGTERM
    fleetprof-operator release    cancels and frees all requests, before an uninstall
    fleetprof-operator check      whether the operator serves and its store is usable, for `helm test`

Exit codes: 0 ended as asked; 2 wrong settings, or no cluster to talk to; 1 an error of its own.
"""

import asyncio
import gc
import logging
import sys

from fleetprof_api.pods import ANALYSIS_AUDIENCE, AUDIENCE
from fleetprof_api.telemetry.figures import AUDIENCE as FIGURES_AUDIENCE
from fleetprof_store.base import Store, StoreError
from fleetprof_store.location import open_location
from kubernetes.aio.config import ConfigException

from fleetprof_operator import check, release
from fleetprof_operator.hub.access.authentication import Authenticator
from fleetprof_operator.identity.account_tokens import AccountTokens
from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.identity.issuer_keys import IssuerKeys
from fleetprof_operator.identity.mounted_certificate import MountedCertificate
from fleetprof_operator.identity.token_review import TokenReviews
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.process import Operator
from fleetprof_operator.settings import Settings, read_settings

log = logging.getLogger(__name__)

WRONG_SETTINGS = 2


async def serve(settings: Settings, store: Store) -> None:
    """Until SIGTERM or SIGINT. Raises ConfigException without a cluster, OSError when it cannot listen."""
    cluster = await Cluster.connect()
    try:
        keeper, mounted = None, None
        if settings.tls_directory is not None:
            mounted = MountedCertificate(settings.tls_directory)
        else:
            keeper = CertificateKeeper(
                cluster,
                namespace=settings.namespace,
                secret=settings.tls_secret,
                names=settings.tls_names,
            )
        operator = Operator(
            settings,
            cluster=cluster,
            store=store,
            authenticator=_make_authenticator(settings, cluster, AUDIENCE),
            analysis_authenticator=_make_authenticator(settings, cluster, ANALYSIS_AUDIENCE),
            readers=_make_readers(settings, cluster),
            certificates=keeper or mounted,
        )
        await operator.run(asyncio.Event())
    finally:
        await cluster.close()


def _make_authenticator(settings: Settings, cluster: Cluster, audience: str) -> Authenticator:
    # A TokenReview is cluster-wide; an installation for some namespaces has no such right.
    keys = IssuerKeys(cluster, audience=audience)
    return keys if settings.namespaces else TokenReviews(cluster, audience=audience, beforehand=keys)


def _make_readers(settings: Settings, cluster: Cluster) -> AccountTokens | None:
    if not settings.figures_account:
        return None
    keys = IssuerKeys(cluster, audience=FIGURES_AUDIENCE)
    return AccountTokens(keys, namespace=settings.namespace, name=settings.figures_account)


def main() -> None:
    """Runs the process."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["release"]:
        sys.exit(release.main(arguments[1:]))
    if arguments[:1] == ["check"]:
        sys.exit(check.main(arguments[1:]))
    settings = read_settings(arguments)
    set_up_logging(settings.log_level)
    try:
        store = open_location(settings.store)
    except (StoreError, ValueError) as error:
        log.critical("the store %s cannot be used: %s", settings.store.address(), error)
        sys.exit(WRONG_SETTINGS)
    gc.freeze()  # modules and types stay: a collection that went through them would hold the loop for 40 ms
    try:
        asyncio.run(serve(settings, store))
    except (ConfigException, ValueError, OSError) as error:
        log.critical("cannot start: %s", error)
        sys.exit(WRONG_SETTINGS)
    except Exception:
        log.critical("ended by an error of its own", exc_info=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
