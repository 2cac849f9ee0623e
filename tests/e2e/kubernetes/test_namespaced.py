"""A release without any right outside its namespace: no cluster role, no webhook, tokens checked offline.

It brings its own small S3 server, as people do who try fleetprof out. The cluster's own release runs beside it, and
leaves this namespace to it.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from cluster.images.building import version
from cluster.places import BINARIES, ROOT
from fleetprof_api.ledger import RankState
from scene.api import Api, Object, wait_until
from scene.installation import NAMESPACE, Installation
from scene.namespaced import RELEASE, NamespacedRelease
from scene.request import JobRequest
from scene.store import Bucket, StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

HERE = "e2e-namespaced"
KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
CHART = str(ROOT / "charts/fleetprof")
# Another release for the whole cluster. The kinds are there, and a second webhook would see everybody's pods.
SECOND = (
    "--set=store.s3.bucket=captures",
    "--set=store.s3.endpoint=http://store.invalid:9000",
    "--set=crds.enabled=false",
    "--set=webhook.enabled=false",
    "--set=fullnameOverride=second",
    f"--set-string=image.tag={version()}",
)


@pytest.fixture(scope="module")
def release(api: Api, installation: Installation, namespaces: Callable[..., str]) -> Iterator[NamespacedRelease]:
    """The chart in a namespace of its own."""
    release = NamespacedRelease(api, namespaces(HERE))
    # The local cluster provides no volumes.
    release.install({"store.bundled.size": ""}, "store.bundled.enabled=true")
    yield release
    release.uninstall()


@pytest.fixture(scope="module")
def bundled_store(api: Api, release: NamespacedRelease) -> Iterator[Bucket]:
    """The release's own."""
    secret = api.get("Secret", f"{RELEASE}-store", HERE)
    assert secret is not None
    key, password = (base64.b64decode(secret["data"][f"AWS_{name}"]).decode() for name in KEYS)
    bucket = Bucket(api, "fleetprof", (key, password), (HERE, f"deployment/{RELEASE}-store", 7070))
    yield bucket
    bucket.close()


def test_it_captures_a_job_of_its_namespace_and_shows_the_report_without_the_writers_keys(
    api: Api, bundled_store: Bucket, release: NamespacedRelease, tmp_path: Path
) -> None:
    with release.injected(Training(api, HERE, "injected", ranks_per_pod=2), tmp_path) as training:
        request = JobRequest(api, bundled_store, HERE, "namespaced", training.name)
        request.apply()
        request.await_end()
        training.finish()
        training.assert_undisturbed()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.get()["status"]["owner"] == f"{HERE}/{RELEASE}"  # and not the one for the whole cluster
    assert request.states() == {0: "UPLOADED", 1: "UPLOADED"}
    assert [rank.rank for rank in bundled_store.report(HERE, request.uid).ranks] == [0, 1]

    clean = {key: value for key, value in os.environ.items() if not key.startswith(("FLEETPROF_", "AWS_", "KUBE"))}
    path = f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}"
    result = subprocess.run(
        ["kubectl", "fleetprof", "report", request.name, "-n", HERE, "--port-forward", "-o", "json"],
        env=clean | {"PATH": path, "KUBECONFIG": str(api.kubeconfig), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert [rank["rank"] for rank in json.loads(result.stdout)["ranks"]] == [0, 1]


def test_another_release_for_the_whole_cluster_is_refused_and_takes_nothing(
    api: Api, release: NamespacedRelease
) -> None:
    refusal = api.helm("install", "second", CHART, "-n", HERE, *SECOND, fails=True)
    assert f"this cluster is served by the release {NAMESPACE}/fleetprof already" in refusal


@pytest.fixture
def past_helm(api: Api, namespaces: Callable[..., str]) -> Iterator[str]:
    """Another release for the whole cluster, its objects applied without a look at what is there; its namespace."""
    namespace = namespaces("e2e-second")
    rendered = api.helm("template", "second", CHART, "-n", namespace, *SECOND)
    objects: list[Object] = [each for each in yaml.safe_load_all(rendered) if each]
    # Who owns the Lease takes it along when it goes.
    objects = [each for each in objects if each["kind"] != "Lease" and not _is_hook(each)]
    api.apply(*objects)
    yield namespace
    api.kubectl("delete", "--ignore-not-found", "-f", "-", document=yaml.safe_dump_all(objects))


def _is_hook(document: Object) -> bool:
    return "helm.sh/hook" in (document["metadata"].get("annotations") or {})


def logs(api: Api, namespace: str) -> str:
    """The logs of a namespace's operators; "" while none runs."""
    running = [pod for pod in api.list("Pod", namespace) if pod["status"].get("phase") == "Running"]
    return "".join(api.logs(pod["metadata"]["name"], namespace, "operator") for pod in running)


def test_one_that_comes_past_helm_is_not_ready_says_why_and_touches_nothing(
    api: Api, past_helm: str, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    reason = "of fleetprof-system/fleetprof holds the Lease fleetprof in kube-system"
    wait_until(lambda: reason in logs(api, past_helm), lambda: f"{reason!r}: {api.explain(past_helm)}")

    request = make_request(training, "of-the-first")
    request.await_end()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.get()["status"]["owner"] == f"{NAMESPACE}/fleetprof"
    (pod,) = api.list("Pod", past_helm)
    assert [each["ready"] for each in pod["status"]["containerStatuses"]] == [False]


def test_it_may_do_nothing_anywhere_else(api: Api, release: NamespacedRelease) -> None:
    account = f"--as=system:serviceaccount:{HERE}:{RELEASE}-operator"

    assert api.kubectl("auth", "can-i", "list", "profilerequests.fleetprof.io", account, "-n", HERE).strip() == "yes"
    for verb, resource in (("list", "profilerequests.fleetprof.io"), ("list", "pods"), ("create", "jobs.batch")):
        assert "no" in api.kubectl("auth", "can-i", verb, resource, account, "-n", NAMESPACE, fails=True)
    for verb, resource in (("create", "tokenreviews.authentication.k8s.io"), ("list", "customresourcedefinitions")):
        assert "no" in api.kubectl("auth", "can-i", verb, resource, account, fails=True)


def test_its_uninstall_leaves_the_captures_of_the_other_release_alone(
    store: StoreInCluster, release: NamespacedRelease, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "of-the-other", window={"iterations": 20})
    request.await_states(RankState.STARTED, ranks=4)

    release.uninstall()

    request.await_end()
    assert request.outcome() == ("True", "Complete"), request.describe()
    assert "report.json" in store.keys(training.namespace, request.uid)
