"""The folder of a run's sockets: short, private, and nobody else's when the run is over."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_cli.local.run.socket_directories import (
    MAX_SOCKET_DIRECTORY,
    keeps_names,
    make_socket_directory,
    socket_directories,
)
from fleetprof_cli.messages import Failure


@pytest.fixture(autouse=True)
def temporary(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(sockets))
    return sockets


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_socket_directory_is_short_and_private(temporary: Path) -> None:
    directory = make_socket_directory()
    assert directory in socket_directories()
    assert directory.is_relative_to(temporary)
    assert len(str(directory)) <= MAX_SOCKET_DIRECTORY
    assert [mode(directory), mode(directory.parent)] == [0o700, 0o700]


def test_all_lie_in_one_that_stays(temporary: Path) -> None:
    made = [make_socket_directory() for _ in range(3)]
    assert len({path.parent for path in made}) == 1
    assert len(set(made)) == 3
    for path in made:
        shutil.rmtree(path)
    assert [path for path in socket_directories() if path.is_relative_to(temporary)] == []
    assert make_socket_directory().parent == made[0].parent


def opened(base: Path) -> None:
    base.chmod(0o777)


def linked(base: Path) -> None:
    base.rename(base.with_name("away"))
    base.symlink_to(base.with_name("away"))


def removed(base: Path) -> None:
    shutil.rmtree(base)


def given_away(base: Path) -> None:
    os.chown(base, 12345, -1)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")


@pytest.mark.attack
@pytest.mark.parametrize("spoil", [opened, linked, removed, pytest.param(given_away, marks=needs_root)])
def test_one_that_may_be_anothers_is_not_used_again(spoil: Callable[[Path], None]) -> None:
    first = make_socket_directory().parent
    spoil(first)
    second = make_socket_directory().parent
    assert second != first
    assert not second.is_symlink()


@pytest.mark.attack
@pytest.mark.parametrize(
    ("mode", "owner", "good"),
    [
        (0o700, None, True),
        (0o755, None, True),
        (0o1777, None, True),
        (0o777, None, False),
        (0o770, None, False),
        pytest.param(0o755, 12345, False, marks=needs_root),
        pytest.param(0o1777, 12345, False, marks=needs_root),
    ],
)
def test_a_place_where_others_can_exchange_names_is_left_aside(
    tmp_path: Path, mode: int, owner: int | None, good: bool
) -> None:
    place = tmp_path / "place" / "below"
    place.mkdir(parents=True)
    place.parent.chmod(mode)
    if owner is not None:
        os.chown(place.parent, owner, -1)
    assert keeps_names(place) is good


def test_a_temporary_directory_that_cannot_be_used_is_left_aside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("d" * 60, "open"):
        place = tmp_path / name
        place.mkdir()
        place.chmod(0o777)
        monkeypatch.setattr("tempfile.tempdir", str(place))
        directory = make_socket_directory()
        assert directory.parents[1] == Path("/tmp")
        directory.rmdir()


def test_nowhere_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetprof_cli.local.run.socket_directories.keeps_names", lambda _: False)
    with pytest.raises(Failure, match="no place for a socket directory"):
        make_socket_directory()
