"""The local web UI hears its own user alone, whatever cookie another has, and says who sits at its usual port."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleetprof_webui import local
from fleetprof_webui.listener import peers
from fleetprof_webui.listener.peers import find_listener, is_of_this_user
from harness.repository import ROOT

STRANGER = 12345
BECOME = "os.setgroups([]); os.setgid(12345); os.setuid(12345)\n"
# What is imported later could not be read any more.
AS_STRANGER = f"import encodings.idna, http.client, os, socket, sys\n{BECOME}"
ASK = AS_STRANGER + (
    "client = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)\n"
    "client.request('GET', '/whoami', headers={'Cookie': sys.argv[2]})\n"
    "print(client.getresponse().status)\n"
)
LISTEN = AS_STRANGER + (
    "place = socket.create_server(('127.0.0.1', 0))\nprint(place.getsockname()[1], flush=True)\nsys.stdin.read()\n"
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")


@pytest.fixture
def squatted() -> Iterator[int]:
    """A port at which another user listens."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


@as_root
@pytest.mark.attack
def test_another_user_is_not_heard_whatever_cookie_they_have(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, subprocess, sys\n"
        "from harness.memory_store import MemoryStore\n"
        "from fleetprof_webui.catalog.database import sqlite_url\n"
        "from fleetprof_webui.local import serve_locally\n"
        "async def main():\n"
        "    url = sqlite_url(pathlib.Path(sys.argv[1]) / 'c.sqlite')\n"
        "    async with serve_locally(MemoryStore(), url, port=0, captures=None, look_every_s=60,"
        " announce=print) as site:\n"
        "        site.access._sessions.append('stolen')\n"
        "        for program in sys.argv[2:]:\n"
        "            ask = await asyncio.create_subprocess_exec(sys.executable, '-c', program, str(site.port),"
        " f'fleetprof-{site.port}=stolen', stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "            out, error = await ask.communicate()\n"
        "            print(out.decode().strip() or error.decode().strip().splitlines()[-1].partition(':')[0])\n"
        "asyncio.run(main())\n"
    )
    own = ASK.replace(BECOME, "")
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), own, ASK],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    mine, strangers = ran.stdout.split()
    assert mine == "200", ran.stderr
    assert strangers in ("http.client.RemoteDisconnected", "ConnectionResetError")


@as_root
@pytest.mark.attack
def test_who_sits_at_the_usual_port_is_named(squatted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_listener(squatted) == STRANGER
    monkeypatch.setattr(local, "USUAL_PORT", squatted)
    with local._listen(None) as place:
        taken = place.getsockname()[1]
        assert taken != squatted
        assert local._find_squatter(taken) == STRANGER


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_this_user_s_own_connections_are_known(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as place, socket.socket(family) as client:
        client.connect((host, place.getsockname()[1]))
        served, address = place.accept()
        with served:
            assert is_of_this_user(address, served.getsockname())
            assert not is_of_this_user(("127.0.0.1", 1), served.getsockname())
        assert find_listener(place.getsockname()[1]) == os.getuid()


def test_where_the_kernel_has_no_such_tables_everybody_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_TABLES", (tmp_path / "none",))
    assert is_of_this_user(("127.0.0.1", 1), ("127.0.0.1", 2))
