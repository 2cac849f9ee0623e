"""Fixtures: a real API server, a namespace of it with a real operator, and the command as users run it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from harness import forked
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.request_ground import RequestGround

Finished = subprocess.CompletedProcess[str]
Run = Callable[..., Awaitable[Finished]]
Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def ground(api: ApiServer, tmp_path: Path) -> AsyncIterator[RequestGround]:
    """A namespace with Job/llama, whose pods the test adds."""
    ground = RequestGround(api, tmp_path)
    job = {
        "metadata": {"name": "llama"},
        "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Never"}}},
    }
    ground.must("POST", f"/apis/batch/v1/namespaces/{ground.namespace}/jobs", job)
    try:
        yield ground
    finally:
        await ground.close()


@pytest.fixture
def environment(ground: RequestGround, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """This environment without what would change the command, with the test's namespace; for a user of the cluster."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FLEETPROF_", "AWS_", "KUBE"))}

    def make(user: str, more: dict[str, str]) -> dict[str, str]:
        kubeconfig = str(ground.api.kubeconfig(user, ground.namespace))
        return clean | {"KUBECONFIG": kubeconfig, "COLUMNS": "200", "HOME": str(tmp_path)} | more

    return make


@pytest.fixture
async def start(environment: Callable[..., dict[str, str]]) -> AsyncIterator[Start]:
    """Starts the command in the test's namespace; it is ended after the test."""
    started: list[asyncio.subprocess.Process] = []

    async def begin(*words: str, user: str = "admin", **more: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "fleetprof_cli.kubectl",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(user, more),
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
def run(environment: Callable[..., dict[str, str]]) -> Run:
    """Runs the command to its end."""

    async def to_end(*words: str, user: str = "admin", **more: str) -> Finished:
        words = ("kubectl-fleetprof", *words)
        return await asyncio.to_thread(forked.run, "fleetprof_cli.kubectl", words, environment(user, more))

    return to_end
