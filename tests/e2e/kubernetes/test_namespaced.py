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
from cluster.images.building import our_name, version
from cluster.places import BINARIES, ROOT
from scene.api import Api
from scene.installation import NAMESPACE, Installation
from scene.request import Request
from scene.store import Bucket
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

RELEASE = "fleetprof"
HERE = "e2e-namespaced"
KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")


@pytest.fixture(scope="module")
def release(api: Api, installation: Installation, namespaces: Callable[..., str]) -> Iterator[str]:
    """The chart in a namespace of its own; the namespace."""
    namespace = namespaces(HERE)
    values = {
        # The local cluster provides no volumes.
        "store.bundled.persistence": "Ephemeral",
        "image.tag": version(),
        "analyzer.resources.requests.cpu": "100m",
    }
    switches = {"scope.cluster": "false", "crds.enabled": "false", "webhook.enabled": "false"}
    switches["store.bundled.enabled"] = "true"
    settings = [word for name, value in values.items() for word in ("--set-string", f"{name}={value}")]
    settings += [word for name, value in switches.items() for word in ("--set", f"{name}={value}")]
    chart = str(ROOT / "charts/fleetprof")
    api.helm("install", RELEASE, chart, "-n", namespace, "--wait", "--timeout", "4m", *settings)
    yield namespace
    api.helm("uninstall", RELEASE, "-n", namespace, "--wait", "--timeout", "4m", "--ignore-not-found")


@pytest.fixture(scope="module")
def bundled_store(api: Api, release: str) -> Iterator[Bucket]:
    """The release's own."""
    secret = api.get("Secret", f"{RELEASE}-store", release)
    assert secret is not None
    key, password = (base64.b64decode(secret["data"][f"AWS_{name}"]).decode() for name in KEYS)
    bucket = Bucket(api, "fleetprof", (key, password), (release, f"deployment/{RELEASE}-store", 7070))
    yield bucket
    bucket.close()


def inject(api: Api, namespace: str, manifest: str, folder: Path) -> str:
    """`fleetprof inject`, as docs/install.md says."""
    secret = api.get("Secret", f"{RELEASE}-tls", namespace)
    assert secret is not None
    authority = folder / "ca.crt"
    authority.write_bytes(base64.b64decode(secret["data"]["ca.crt"]))
    hub = f"{RELEASE}-hub.{namespace}.svc:8443"
    program = Path(sys.executable).parent / "fleetprof"
    done = subprocess.run(
        [program, "inject", "-f", "-", "--ca-file", authority, "--hub", hub, "--image", our_name("sidecar")],
        input=manifest,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_captures_a_job_of_its_namespace_and_shows_the_report_without_the_writers_keys(
    api: Api, bundled_store: Bucket, release: str, tmp_path: Path
) -> None:
    training = Training(api, release, "injected", ranks_per_pod=2)
    manifest = inject(api, release, yaml.safe_dump_all(training.objects()), tmp_path)
    api.kubectl("apply", "-f", "-", document=manifest)
    try:
        training.await_steps()
        request = Request(api, bundled_store, release, "namespaced", training.name)
        request.apply()
        request.await_end()
        training.finish()
        training.assert_undisturbed()
    finally:
        training.remove()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.get()["status"]["owner"] == f"{release}/{RELEASE}"  # and not the one for the whole cluster
    assert request.states() == {0: "UPLOADED", 1: "UPLOADED"}
    assert [rank.rank for rank in bundled_store.report(release, request.uid).ranks] == [0, 1]

    clean = {key: value for key, value in os.environ.items() if not key.startswith(("FLEETPROF_", "AWS_", "KUBE"))}
    path = f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}"
    done = subprocess.run(
        ["kubectl", "fleetprof", "report", request.name, "-n", release, "--port-forward", "-o", "json"],
        env=clean | {"PATH": path, "KUBECONFIG": str(api.kubeconfig), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert [rank["rank"] for rank in json.loads(done.stdout)["ranks"]] == [0, 1]


def test_another_release_for_the_whole_cluster_is_refused_and_takes_nothing(api: Api, release: str) -> None:
    chart = str(ROOT / "charts/fleetprof")
    values = ("--set=store.bundled.enabled=true", "--set=crds.enabled=false", "--set=fullnameOverride=second")
    said = api.helm("install", "second", chart, "-n", release, *values, fails=True)
    assert f"this cluster is served by the release {NAMESPACE}/fleetprof already" in said


def test_it_may_do_nothing_anywhere_else(api: Api, release: str) -> None:
    account = f"--as=system:serviceaccount:{release}:{RELEASE}-operator"

    assert api.kubectl("auth", "can-i", "list", "profilerequests.fleetprof.io", account, "-n", release).strip() == "yes"
    for verb, resource in (("list", "profilerequests.fleetprof.io"), ("list", "pods"), ("create", "jobs.batch")):
        assert "no" in api.kubectl("auth", "can-i", verb, resource, account, "-n", NAMESPACE, fails=True)
    for verb, resource in (("create", "tokenreviews.authentication.k8s.io"), ("list", "customresourcedefinitions")):
        assert "no" in api.kubectl("auth", "can-i", verb, resource, account, fails=True)
