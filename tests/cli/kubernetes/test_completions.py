"""The completions of `kubectl fleetprof top`: the names by which `top` finds what the operator has figures of."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_api.telemetry.figures import FleetFigures, WorkloadFigures
from fleetprof_cli import kubectl
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes import completions
from fleetprof_cli.kubernetes.connection import ClusterPlace
from fleetprof_cli.messages import Failure

JOBS = {
    "team": [("Job", "llama"), ("PyTorchJob", "gpt"), ("Strange", "llama"), ("Job", "a\x1bb")],
    "other": [("Job", "bert")],
}


@pytest.fixture
def namespaces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The namespaces that the operator was asked of; the context's is team."""
    namespaces: list[str] = []

    @asynccontextmanager
    async def connect(place: ClusterPlace) -> AsyncIterator[Any]:
        yield SimpleNamespace(namespace=place.namespace or "team", cluster=None)

    class Reader:
        def __init__(self, _cluster: None, **where: str) -> None:
            self._where = where

        async def read(self, asked_namespace: str, _workload: str) -> FleetFigures:
            namespaces.append(asked_namespace)
            if self._where["system_namespace"] == "nowhere":
                raise Failure("no operator", next_step="", code=ExitCode.NO_HUB)
            return answer(asked_namespace)

    def answer(asked_namespace: str) -> FleetFigures:
        found = [
            WorkloadFigures(
                namespace=namespace, kind=kind, name=name, ranks=1, world_size=1, gpus=0, start_unix_ns=0, at_unix_ns=0
            )
            for namespace, jobs in JOBS.items()
            if asked_namespace in ("", namespace)
            for kind, name in jobs
        ]
        return FleetFigures(at_unix_ns=0, interval_ns=1, workloads=found)

    monkeypatch.setattr(completions, "connect", connect)
    monkeypatch.setattr(completions, "FiguresReader", Reader)
    return namespaces


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (["top", ""], ["Strange/llama", "job/a\ufffdb", "job/llama", "pytorchjob/gpt"]),
        (["top", "job/l"], ["job/llama"]),
        (["top", "-n", "other", ""], ["job/bert"]),
        (["top", "-A", "job/"], ["job/a\ufffdb", "job/bert", "job/llama"]),
        (["top", "--system-namespace", "nowhere", ""], []),
    ],
    ids=["the context's namespace", "a beginning", "another namespace", "all namespaces", "no operator"],
)
def test_running_jobs_are_offered(
    namespaces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    offers: list[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-fleetprof", *words])
    kubectl.complete()
    out, err = capsys.readouterr()
    assert (out.splitlines(), err) == ([*offers, ":4"], "")
    assert len(namespaces) == 1
