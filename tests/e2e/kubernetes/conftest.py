"""Fixtures of the tests on Kubernetes: one cluster and one S3 server for all of them, a namespace for each.

A cluster that runs already (`make cluster`) is used and left; one that was started here is removed at the end.
"""

import os
from collections.abc import Callable, Iterator

import pytest
from cluster.__main__ import make
from cluster.choice import Cluster, alone, choose_cluster
from cluster.refusal import Refusal
from scene.api import Api
from scene.namespaces import make_namespace, remove_namespace
from scene.store import NAMESPACE as STORE_NAMESPACE
from scene.store import Store
from scene.training import Training


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
