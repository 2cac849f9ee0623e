"""Fixtures of the tests on Kubernetes: one cluster and one S3 server for all of them, a namespace for each.

A cluster that runs already (`make cluster`) is used and left; one that was started here is removed at the end.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster.__main__ import make
from cluster.choice import Cluster, alone, choose_cluster
from cluster.refusal import Refusal
from scene.api import Api
from scene.installation import Installation
from scene.namespaces import INJECTED, make_namespace, remove_namespace
from scene.request import Request
from scene.stages import Stages
from scene.store import NAMESPACE as STORE_NAMESPACE
from scene.store import Store
from scene.training import Training


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Waits, before any test's time runs, for the end of another run on the same cluster: names there are fixed."""
    here = Path(__file__).parent
    if any(item.path.is_relative_to(here) and "cluster" in getattr(item, "fixturenames", ()) for item in session.items):
        waiting = alone("cluster-tests")
        waiting.__enter__()
        session.config.add_cleanup(lambda: waiting.__exit__(None, None, None))


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A running cluster with all images; skips with the reason where none can be had."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled(), alone():
        try:
            found = choose_cluster()
            was_up = found.is_up()
            make(found)
        except Refusal as refusal:
            if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
                pytest.fail(str(refusal))
            pytest.skip(str(refusal))
    yield found
    if not was_up:
        with capture.global_and_fixture_disabled(), alone():
            found.down()


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Api:
    """The cluster's API with its administrator's rights."""
    return Api(cluster.kubeconfig)


@pytest.fixture(scope="session")
def store(api: Api) -> Iterator[Store]:
    """The S3 server that all tests share."""
    remove_namespace(api, STORE_NAMESPACE)
    server = Store(api)
    try:
        server.start()
        yield server
    finally:
        server.close()
        remove_namespace(api, STORE_NAMESPACE)


@pytest.fixture(scope="session")
def installing() -> Stages:
    """How long the installation took."""
    return Stages("Installation")


@pytest.fixture(scope="session")
def installation(api: Api, cluster: Cluster, store: Store, installing: Stages) -> Iterator[Installation]:
    """fleetprof, installed from nothing; `test_uninstall.py` takes it away before this does."""
    release = Installation(api, store, cluster.audit_log)
    try:
        with installing.stage("helm install, until everything is ready"):
            release.install()
        yield release
    finally:
        release.clean()


@pytest.fixture(scope="module")
def namespaces(api: Api, cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Makes namespaces with PyTorch at hand; all are removed after the module."""
    made: list[str] = []

    def make_one(name: str, labels: dict[str, str] | None = None) -> str:
        remove_namespace(api, name)
        make_namespace(api, name, cluster.torch_folder, labels)
        made.append(name)
        return name

    yield make_one
    for name in made:
        api.delete("Namespace", name)
    for name in made:
        remove_namespace(api, name)


@pytest.fixture
def start_training(api: Api) -> Iterator[Callable[..., Training]]:
    """Starts training Jobs and waits for their first iterations; removes them after the test."""
    started: list[Training] = []

    def start(namespace: str, name: str, **options: object) -> Training:
        training = Training(api, namespace, name, **options)
        started.append(training)
        training.start()
        training.await_steps()
        return training

    yield start
    for training in started:
        training.remove()


@pytest.fixture
def make_request(api: Api, store: Store) -> Iterator[Callable[..., Request]]:
    """Applies requests, and deletes them after the test."""
    made: list[Request] = []

    def make_one(training: Training, name: str, **spec: object) -> Request:
        request = Request(api, store, training.namespace, name, training.name, spec)
        request.apply()
        made.append(request)
        return request

    yield make_one
    for request in made:
        api.kubectl("delete", "profreq", request.name, "-n", request.namespace, "--ignore-not-found", timeout_s=180)


@pytest.fixture(scope="module")
def team(installation: Installation, namespaces: Callable[..., str], request: pytest.FixtureRequest) -> str:
    """A namespace of trainers that asked for injection, one for each file of tests."""
    return namespaces(request.module.__name__.rpartition(".")[2].replace("_", "-"), INJECTED)


@pytest.fixture(scope="module")
def training(api: Api, team: str) -> Iterator[Training]:
    """Four ranks that a file's tests share. Its last test ends them; here they are only removed."""
    shared = Training(api, team, "shared")
    try:
        shared.start()
        shared.await_steps()
        yield shared
    finally:
        shared.remove()
