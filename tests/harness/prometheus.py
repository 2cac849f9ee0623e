"""Prometheus's own programs: its tool for rules, and both servers over folders of their own, ended with their block."""

import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.waiting import wait_until


def find_program(name: str) -> str:
    """Its path. Skips where there is none, or fails where FLEETPROF_REQUIRE says that there must be."""
    found = shutil.which(name)
    if found is None:
        reason = f"there is no {name}; .ci/prometheus installs Debian's"
        if "prometheus" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def run_alertmanager(folder: Path, configuration: dict[str, Any]) -> Iterator[int]:
    """Its port."""
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(configuration))
    words = [
        "--config.file=alertmanager.yaml",
        f"--storage.path={folder / 'alertmanager'}",
        "--cluster.listen-address=",
    ]
    with _run("prometheus-alertmanager", folder, *words) as port:
        yield port


@contextmanager
def run_prometheus(folder: Path, configuration: dict[str, Any], groups: list[dict[str, Any]]) -> Iterator[int]:
    """Its port; `groups` are its rules."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({**configuration, "rule_files": ["rules.yaml"]}))
    words = ["--config.file=prometheus.yaml", f"--storage.tsdb.path={folder / 'prometheus'}"]
    with _run("prometheus", folder, *words) as port:
        yield port


@contextmanager
def _run(name: str, folder: Path, *words: str) -> Iterator[int]:
    program = find_program(name)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [program, *words, f"--web.listen-address=127.0.0.1:{port}"], cwd=folder, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: _is_ready(port), f"{name} to be ready")
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(port: int) -> bool:
    """Tells whether it reads its data already: until then it listens, and answers 503 to each query."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False
