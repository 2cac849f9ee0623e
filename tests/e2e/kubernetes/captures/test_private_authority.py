"""A store whose certificate is of the site's own authority: hub, sidecars and analysis check it, nothing is mounted."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from scene.api import Api
from scene.installation import Installation
from scene.namespaced import NamespacedRelease
from scene.request import JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch, pytest.mark.nightly]

HERE = "e2e-private"


@pytest.fixture(scope="module")
def private_store(
    api: Api, namespaces: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoreInCluster]:
    """An S3 server with TLS, and the authority as a ConfigMap beside it."""
    namespaces(HERE)
    folder = tmp_path_factory.mktemp("certificates")
    made = renew_certificates(Certificates(), [f"store.{HERE}.svc", "localhost"], datetime.now(UTC))
    for name, content in (("ca.crt", made.ca_crt), ("tls.crt", made.tls_crt), ("tls.key", made.tls_key)):
        (folder / name).write_bytes(content)
    metadata = {"name": "corporate-ca", "namespace": HERE}
    data = {"ca.crt": made.ca_crt.decode()}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    store = StoreInCluster(api, HERE, folder)
    store.start()
    api.create(store.secret(HERE, "s3"))
    yield store
    store.close()


@pytest.fixture(scope="module")
def release(api: Api, installation: Installation, private_store: StoreInCluster) -> Iterator[NamespacedRelease]:
    """A release that trusts that authority."""
    release = NamespacedRelease(api, HERE)
    release.install(
        {
            "store.s3.bucket": private_store.bucket,
            "store.s3.endpoint": private_store.endpoint,
            "store.s3.authority": "corporate-ca",
            "store.credentials.operatorSecret": "s3",
        }
    )
    yield release
    release.uninstall()


def test_traces_and_report_get_into_a_store_of_the_site_s_own_authority(
    api: Api, private_store: StoreInCluster, release: NamespacedRelease, tmp_path: Path
) -> None:
    with release.injected(Training(api, HERE, "private", ranks_per_pod=2), tmp_path) as training:
        (pod,) = training.list_pods()
        request = JobRequest(api, private_store, HERE, "private", training.name)
        request.apply()
        request.await_end()
        training.finish()
        training.assert_undisturbed()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == {0: "UPLOADED", 1: "UPLOADED"}
    assert [rank.rank for rank in private_store.report(HERE, request.uid).ranks] == [0, 1]
    assert "corporate-ca" not in str(pod["spec"]), "the sidecar hears of it from the hub"
