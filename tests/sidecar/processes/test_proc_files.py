"""The facts read of /proc, on files as Linux writes them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_sidecar.processes.proc_files import read_environment
from fleetprof_sidecar.processes.roles import Environment


@pytest.fixture
def proc(tmp_path: Path) -> Callable[[bytes, bytes], Path]:
    def write(environ: bytes, cmdline: bytes) -> Path:
        folder = tmp_path / "17"
        folder.mkdir(exist_ok=True)
        (folder / "environ").write_bytes(environ)
        (folder / "cmdline").write_bytes(cmdline)
        return tmp_path

    return write


def test_the_variables_of_a_rank_below_torchrun(proc: Callable[[bytes, bytes], Path]) -> None:
    environ = b"PATH=/bin\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=8\0TORCHELASTIC_RUN_ID=run\0TORCHELASTIC_RESTART_COUNT=2\0"
    assert read_environment(17, proc(environ, b"python\0train.py\0")) == Environment(3, 1, 8, "run", 2)


@pytest.mark.parametrize("value", [b"", b"x", b"-1", b"99999999999", b"1 ", b"\xff"])
def test_a_rank_that_is_no_number_is_none(proc: Callable[[bytes, bytes], Path], value: bytes) -> None:
    read = read_environment(17, proc(b"RANK=" + value + b"\0", b"python\0"))
    assert read == Environment()


@pytest.mark.parametrize(
    ("words", "launcher"),
    [
        ("/usr/bin/python3 /opt/bin/torchrun --nproc-per-node 4 train.py", True),
        ("torchrun train.py", True),
        ("python -u -m torch.distributed.run train.py", True),
        ("python -m torch.distributed.launch train.py", True),
        ("python /opt/bin/accelerate launch train.py", True),
        ("deepspeed train.py", True),
        ("python train.py", False),
        ("python train.py torchrun", False),
        ("python train.py -m torch.distributed.run", False),
        ("python -m train", False),
        ("python -m", False),
        ("python", False),
        ("", False),
    ],
)
def test_known_launchers_are_told_by_their_command_line(
    proc: Callable[[bytes, bytes], Path], words: str, launcher: bool
) -> None:
    read = read_environment(17, proc(b"A=b\0", words.replace(" ", "\0").encode() + b"\0"))
    assert read is not None
    assert read.launcher_program is launcher


def test_what_cannot_be_seen_is_none(proc: Callable[[bytes, bytes], Path], tmp_path: Path) -> None:
    assert read_environment(0) is None
    assert read_environment(18, tmp_path) is None
    assert read_environment(17, proc(b"", b"")) is None


def test_this_very_process_can_be_read() -> None:
    assert read_environment(os.getpid()) is not None
