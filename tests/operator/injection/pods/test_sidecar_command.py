"""The command of the sidecar's container: the sidecar, or in another image something that ends with the pod."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from harness.kubernetes.documents.pods_to_inject import SETTINGS
from harness.waiting import wait_until

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "train", "image": "torch:2.15"}]}}


@pytest.fixture
def command() -> list[str]:
    spec: Any = change_pod(POD, NamespaceLimits(), SETTINGS).pod["spec"]
    words: list[str] = spec["initContainers"][0]["command"]
    return words


def test_in_the_sidecars_image_the_sidecar_takes_the_shells_place(command: list[str], tmp_path: Path) -> None:
    program = tmp_path / "fleetprof-sidecar-supervisor"
    program.write_text("#!/bin/sh\necho $$\nexit 3\n")
    program.chmod(0o755)
    with subprocess.Popen(command, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, stdout=subprocess.PIPE) as shell:
        output, _ = shell.communicate(timeout=60)
    assert (shell.returncode, output.decode().strip()) == (3, str(shell.pid))


def test_in_the_trainers_image_it_sleeps_and_ends_well_with_the_pod(command: list[str]) -> None:
    with subprocess.Popen(command, start_new_session=True) as shell:
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        wait_until(lambda: bool(children.read_text()), "it to sleep")
        shell.send_signal(signal.SIGTERM)
        assert shell.wait(timeout=60) == 0
        os.killpg(shell.pid, signal.SIGKILL)  # the `sleep`, which a container's end takes along


def test_without_anything_to_sleep_by_it_burns_no_time(command: list[str], tmp_path: Path) -> None:
    ended = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, timeout=60, check=False)
    assert ended.returncode != -signal.SIGKILL
