"""The shared directory: which paths are fit, what lies in it, what is collected, what a trainer's environment gets."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from fleetprof_sidecar.sockets.directory import SocketDirectory, UnusableDirectory, check_path, trainer_environment


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/tmp/" + "x" * 50, "has 55 characters, at most 54"),
        ("/run/fleetprof/", "without a trailing slash"),
        ("run/fleetprof", "must be absolute"),
        ("/", "must be absolute"),
        ("//run/fleetprof", "must be absolute"),
        ("/run//fleetprof", "'//'"),
        ("/run/../fleetprof", "'..'"),
        ("/run/fleet prof", "plain ASCII without spaces"),
        ("/run/fleet=prof", "plain ASCII"),
        ("/run/fleet:prof", "plain ASCII"),
        ("/run/fléetprof", "plain ASCII"),
        ("/run/fleet\nprof", "plain ASCII"),
    ],
)
def test_a_path_that_could_end_a_trainer_is_refused_with_the_rule(path: str, rule: str) -> None:
    with pytest.raises(UnusableDirectory, match=rule):
        check_path(path)


def test_a_symbolic_link_is_refused_with_what_to_use_instead(short_directory: str) -> None:
    link = Path(short_directory) / "link"
    link.symlink_to(short_directory)
    with pytest.raises(UnusableDirectory, match=f"use '{short_directory}'"):
        SocketDirectory(link)
    assert SocketDirectory(short_directory).path == Path(short_directory)


def test_the_longest_path_leaves_room_for_kinetos_name() -> None:
    path = "/" + "x" * 53
    assert check_path(path) == path
    assert len(f"{path}/dynoconfigclient{'0' * 36}") <= 107


def test_a_prepared_directory_holds_what_trainers_need(short_directory: str) -> None:
    directory = SocketDirectory(f"{short_directory}/new")
    directory.prepare()
    directory.prepare()
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.traces.stat().st_mode) & 0o1777 == 0o1777
    assert (directory.path / "libkineto.conf").read_text() == "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n"
    handed_over = {str(path.relative_to(directory.agent)) for path in directory.agent.rglob("*") if path.is_file()}
    assert {f"fleetprof_agent/{name}.py" for name in ("__init__", "wire", "pynvml", "samples/nvml")} <= handed_over
    # Whatever else stood beside the package would stand before a module of the job.
    assert {name for name in handed_over if "/" not in name} == {"sitecustomize.py"}
    assert not any(name.startswith(".") or "/." in name for name in handed_over)


def test_a_directory_that_was_there_keeps_its_permissions(short_directory: str) -> None:
    os.chmod(short_directory, 0o777)
    SocketDirectory(short_directory).prepare()
    assert stat.S_IMODE(os.stat(short_directory).st_mode) == 0o777


def test_traces_of_a_secretive_trainer_stay_readable(short_directory: str) -> None:
    directory = SocketDirectory(short_directory)
    directory.prepare()
    try:
        os.getxattr(directory.traces, "system.posix_acl_default")
    except OSError:
        pytest.skip("this file system has no ACLs")
    script = "import os, sys; os.umask(0o077); open(sys.argv[1], 'w').close()"
    subprocess.run([sys.executable, "-c", script, str(directory.traces / "t.json")], check=True)
    assert stat.S_IMODE((directory.traces / "t.json").stat().st_mode) & 0o060 == 0o060  # the ACL's mask


def test_files_of_an_older_agent_do_not_stay(short_directory: str) -> None:
    directory = SocketDirectory(short_directory)
    directory.prepare()
    package = directory.agent / "fleetprof_agent"
    (package / "old.py").write_text("")
    (package / "samples/old.py").write_text("")
    (package / "wire").mkdir()
    (package / "wire/__init__.py").write_text("")  # would be imported in place of wire.py
    (directory.agent / "sitecustomize.py").write_text("broken(")
    directory.prepare()
    assert not any((package / name).exists() for name in ("old.py", "samples/old.py", "wire"))
    assert (package / "wire.py").is_file()
    compile((directory.agent / "sitecustomize.py").read_text(), "sitecustomize.py", "exec")


def test_only_sockets_of_the_dead_are_collected(short_directory: str) -> None:
    directory = SocketDirectory(short_directory)
    directory.prepare()
    living = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    living.bind(f"{short_directory}/dynoconfigclient1")
    for name in ("dynoconfigclient2", "fleetprofagent3", "somebody"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
            dead.bind(f"{short_directory}/{name}")
    (directory.path / "dynoconfigclient-notes").write_text("a file of the user's")
    assert directory.collect_garbage() == 2
    left = {path.name for path in directory.path.iterdir()}
    assert left == {"agent", "traces", "libkineto.conf", "dynoconfigclient1", "dynoconfigclient-notes", "somebody"}
    living.close()


def test_closing_removes_our_sockets_and_no_others(short_directory: str) -> None:
    directory = SocketDirectory(short_directory)
    directory.prepare()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(f"{short_directory}/dynolog")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as successor:
        successor.bind(f"{short_directory}/fleetprof")
        directory.close()
        assert not (directory.path / "dynolog").exists()
        assert (directory.path / "fleetprof").exists()


PATH = "/run/fleetprof"
NEEDED = {
    "KINETO_USE_DAEMON": "1",
    "KINETO_IPC_SOCKET_DIR": "/run/fleetprof",
    "KINETO_ONDEMAND_TRACE_DIR": "/run/fleetprof/traces",
    "KINETO_CONFIG": "/run/fleetprof/libkineto.conf",
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {**NEEDED, "PYTHONPATH": "/run/fleetprof/agent"}),
        ({"HOME": "/root"}, {**NEEDED, "HOME": "/root", "PYTHONPATH": "/run/fleetprof/agent"}),
        ({"PYTHONPATH": "/a:/b"}, {**NEEDED, "PYTHONPATH": "/run/fleetprof/agent:/a:/b"}),
        ({"PYTHONPATH": ""}, {**NEEDED, "PYTHONPATH": "/run/fleetprof/agent"}),
        ({"PYTHONPATH": "/a:"}, {**NEEDED, "PYTHONPATH": "/run/fleetprof/agent:/a:"}),
        ({"PYTHONPATH": "/a:/run/fleetprof/agent"}, {**NEEDED, "PYTHONPATH": "/run/fleetprof/agent:/a"}),
        ({"FLEETPROF_AGENT": "0"}, {**NEEDED, "FLEETPROF_AGENT": "0"}),
        ({"FLEETPROF_AGENT": "0", "PYTHONPATH": "/a"}, {**NEEDED, "FLEETPROF_AGENT": "0", "PYTHONPATH": "/a"}),
        (
            {"KINETO_IPC_SOCKET_DIR": "/mine", "KINETO_CONFIG": "/mine.conf"},
            {
                **NEEDED,
                "KINETO_IPC_SOCKET_DIR": "/mine",
                "KINETO_CONFIG": "/mine.conf",
                "PYTHONPATH": "/run/fleetprof/agent",
            },
        ),
    ],
)
def test_a_trainers_environment_gains_what_it_lacks(before: dict[str, str], after: dict[str, str]) -> None:
    unchanged = dict(before)
    assert trainer_environment(PATH, before) == after
    assert before == unchanged


def test_the_agent_may_lie_elsewhere(short_directory: str, tmp_path: Path) -> None:
    directory = SocketDirectory(short_directory, tmp_path / "agent")
    directory.prepare()
    assert not (directory.path / "agent").exists()
    assert (tmp_path / "agent/sitecustomize.py").is_file()
    environment = trainer_environment(PATH, {"PYTHONPATH": "/a"}, agent=str(tmp_path / "agent"))
    assert environment["PYTHONPATH"] == f"{tmp_path}/agent:/a"
    with pytest.raises(UnusableDirectory, match="cannot be on PYTHONPATH"):
        trainer_environment(PATH, {}, agent="/a:/b")


def test_no_environment_is_made_for_an_unusable_path() -> None:
    with pytest.raises(UnusableDirectory):
        trainer_environment("/run/fleetprof/", {})
