"""Fixtures of the tests on Kubernetes: one cluster and one S3 server for all of them, a namespace for each.

A cluster that runs already (`make cluster`) is used and left; one that was started here is removed at the end.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cluster.__main__ import make
from cluster.choice import Cluster, choose_cluster
from cluster.refusal import ClusterFailure, NoCluster
from cluster.turns import alone
from scene.alerting import NotifiedPod
from scene.api import Api
from scene.held_pod import make_held_pod
from scene.installation import Installation
from scene.namespaces import INJECTED, make_namespace, remove_namespace
from scene.people import People
from scene.request import JobRequest
from scene.stages import StageSeconds
from scene.store import NAMESPACE as STORE_NAMESPACE
from scene.store import StoreInCluster
from scene.training import Training

_CLUSTER = pytest.StashKey[Cluster | NoCluster | ClusterFailure]()
_STAYS = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Makes the cluster before any test's time runs: minutes the first time, or while another run has it."""
    config, here = session.config, Path(__file__).parent
    wanted = (item for item in session.items if item.path.is_relative_to(here))
    if config.option.collectonly or not any("cluster" in getattr(item, "fixturenames", ()) for item in wanted):
        return
    # Names in the cluster are fixed, so two runs of these tests follow each other.
    turn = alone("cluster-tests")
    turn.__enter__()

    def end_turn() -> None:
        turn.__exit__(None, None, None)

    config.add_cleanup(end_turn)
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        config.stash[_CLUSTER] = _make_cluster(config)


def _make_cluster(config: pytest.Config) -> Cluster | NoCluster | ClusterFailure:
    try:
        with alone():
            found = choose_cluster()
            config.stash[_STAYS] = found.is_up()
            if not config.stash[_STAYS]:
                config.add_cleanup(lambda: _remove_cluster(found))
            make(found)
    except (NoCluster, ClusterFailure) as trouble:
        return trouble
    return found


def _remove_cluster(cluster: Cluster) -> None:
    with alone():
        cluster.down()


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Cluster:
    """A running cluster with all images; skips with the reason where none can be had."""
    found = pytestconfig.stash[_CLUSTER]
    if isinstance(found, NoCluster) and "cluster" not in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
        pytest.skip(str(found))
    if isinstance(found, NoCluster | ClusterFailure):
        pytest.fail(str(found))
    return found


@pytest.fixture(scope="session")
def stays(cluster: Cluster, pytestconfig: pytest.Config) -> bool:
    """Tells if the cluster outlives these tests: only then is it left as it was found, at ten seconds a namespace."""
    return pytestconfig.stash[_STAYS]


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Api:
    """The cluster's API with its administrator's rights."""
    return Api(cluster.kubeconfig)


@pytest.fixture(scope="session")
def store(api: Api, stays: bool) -> Iterator[StoreInCluster]:
    """The S3 server that all tests share."""
    remove_namespace(api, STORE_NAMESPACE)
    make_namespace(api, STORE_NAMESPACE)
    server = StoreInCluster(api)
    try:
        server.start()
        yield server
    finally:
        server.close()
        if stays:
            remove_namespace(api, STORE_NAMESPACE)


@pytest.fixture(scope="session")
def installing() -> StageSeconds:
    """The time of the installation."""
    return StageSeconds("Installation")


@pytest.fixture(scope="session")
def people(api: Api, stays: bool) -> Iterator[People]:
    """The people who sign in to the web UI, and their provider; the provider itself is started by who needs it."""
    provider = People(api)
    yield provider
    if stays:
        provider.remove()


@pytest.fixture(scope="session")
def installation(
    api: Api, cluster: Cluster, store: StoreInCluster, people: People, installing: StageSeconds, stays: bool
) -> Iterator[Installation]:
    """fleetprof, installed from nothing; `test_uninstall.py` takes it away before this does."""
    release = Installation(api, store, people, cluster.audit_log)
    try:
        with installing.stage("helm install, until everything is ready"):
            release.install()
        yield release
    finally:
        if stays:
            release.clean()


@pytest.fixture(scope="session")
def leaving(api: Api, stays: bool) -> Iterator[list[str]]:
    """Namespaces that are being deleted, which takes Kubernetes ten seconds each: they are waited for at the end."""
    names: list[str] = []
    yield names
    if stays:
        for name in names:
            remove_namespace(api, name)


@contextmanager
def _making_namespaces(api: Api, cluster: Cluster, leaving: list[str]) -> Iterator[Callable[..., str]]:
    made: list[str] = []

    def make_one(name: str, labels: dict[str, str] | None = None) -> str:
        remove_namespace(api, name)
        make_namespace(api, name, cluster.torch_folder, labels)
        made.append(name)
        return name

    yield make_one
    for name in made:
        api.delete("Namespace", name)
        leaving.append(name)


@pytest.fixture(scope="module")
def namespaces(api: Api, cluster: Cluster, leaving: list[str]) -> Iterator[Callable[..., str]]:
    """Makes namespaces with PyTorch at hand; all are removed after the module."""
    with _making_namespaces(api, cluster, leaving) as make_one:
        yield make_one


@pytest.fixture
def start_training(api: Api) -> Iterator[Callable[..., Training]]:
    """Starts training Jobs and waits for their first iterations; removes them after the test."""
    started: list[Training] = []

    def start(namespace: str, name: str, **options: Any) -> Training:
        training = Training(api, namespace, name, **options)
        started.append(training)
        training.start()
        training.await_steps()
        return training

    yield start
    for training in started:
        training.remove()


@pytest.fixture
def make_request(api: Api, store: StoreInCluster) -> Iterator[Callable[..., JobRequest]]:
    """Applies requests, and deletes them after the test."""
    made: list[JobRequest] = []

    def make_one(training: Training, name: str, **spec: object) -> JobRequest:
        request = JobRequest(api, store, training.namespace, name, training.name, spec)
        request.apply()
        made.append(request)
        return request

    yield make_one
    for request in made:
        api.kubectl("delete", "profreq", request.name, "-n", request.namespace, "--ignore-not-found", timeout_s=180)


@pytest.fixture
def webhook(api: Api) -> Iterator[NotifiedPod]:
    """A pod that Alertmanager notifies of alerts."""
    one = NotifiedPod(api)
    try:
        one.start()
        yield one
    finally:
        one.remove()


@pytest.fixture(scope="session")
def team(installation: Installation, api: Api, cluster: Cluster, leaving: list[str]) -> Iterator[str]:
    """A namespace of trainers that asked for injection, and of a pod whose sidecar's image nobody can pull.

    That waits for two minutes while other tests run.
    """
    with _making_namespaces(api, cluster, leaving) as make_one:
        name = make_one("e2e-team", INJECTED)
        make_held_pod(api, name)
        yield name


@pytest.fixture(scope="session")
def training(api: Api, team: str) -> Iterator[Training]:
    """Four ranks that nobody harms, shared by several files: to import PyTorch is most of what a test costs.

    `test_uninstall.py` ends them, else this does: they trained as if nobody had looked.
    """
    # They train for as long as the tests last, so they train slowly.
    labels = {"fleetprof.io/rank-metrics": "true"}
    shared = Training(api, team, "shared", seconds=3600, pause_s=0.4, pod_labels=labels)
    try:
        shared.start()
        shared.await_steps()
        yield shared
        if not shared.conditions():
            shared.finish()
            shared.assert_undisturbed()
    finally:
        shared.remove()
