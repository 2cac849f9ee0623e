"""The agents' socket: who is heard, and that nothing else does any harm."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fleetprof_agent import wire
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.sockets.agent_endpoint import AgentEndpoint, make_agent_socket

Serve = Callable[..., tuple[ProcessTable, AgentEndpoint]]
Speak = Callable[..., socket.socket]


@pytest.fixture
def serve(short_directory: str) -> Iterator[Serve]:
    started = []

    def start(**options: Any) -> tuple[ProcessTable, AgentEndpoint]:
        agent_socket = make_agent_socket(short_directory)
        table = ProcessTable(agent_socket)
        endpoint = AgentEndpoint(agent_socket, table, **options)
        endpoint.start()
        started.append(endpoint)
        return table, endpoint

    yield start
    for endpoint in started:
        endpoint.stop()
    assert not (Path(short_directory) / "fleetprof").exists()


@pytest.fixture
def speak(short_directory: str) -> Iterator[Speak]:
    """Sends one datagram from a socket of this name; returns the socket."""
    made = []

    def send(data: bytes, name: str = "fleetprofagent1") -> socket.socket:
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        agent.settimeout(10)
        made.append(agent)
        agent.bind(f"{short_directory}/{name}")
        agent.sendto(data, f"{short_directory}/fleetprof")
        return agent

    yield send
    for agent in made:
        agent.close()


def wait_for(counters: Mapping[str, int], name: str) -> None:
    end = time.monotonic() + 10
    while not counters[name]:
        assert time.monotonic() < end, dict(counters)
        time.sleep(0.005)


HELLO = wire.encode("hello", pid=17, rank=3)


def test_a_hello_makes_a_process(serve: Serve, speak: Speak) -> None:
    table, endpoint = serve()
    speak(HELLO)
    end = time.monotonic() + 10
    while not table.snapshot():
        assert time.monotonic() < end, dict(endpoint.counters)
        time.sleep(0.005)
    assert [(view.rank, view.uid, view.has_agent) for view in table.snapshot()] == [(3, os.getuid(), True)]


def test_an_agent_hears_from_the_sidecars_own_socket(serve: Serve, speak: Speak, short_directory: str) -> None:
    table, _ = serve()
    agent = speak(HELLO)
    end = time.monotonic() + 10
    while not table.snapshot():
        assert time.monotonic() < end
        time.sleep(0.005)
    assert table.send_to_agent("fleetprofagent1", "cancel", capture="c") is True
    data, sender = agent.recvfrom(wire.MAX_BYTES)
    assert wire.decode(data, wire.TO_AGENT)["capture"] == "c"
    assert sender == f"{short_directory}/fleetprof"


@pytest.mark.parametrize(
    ("data", "name", "counter"),
    [
        (b"junk", "fleetprofagent1", "malformed"),
        (wire.encode("arm", pid=1), "fleetprofagent1", "malformed"),
        (b"x" * (wire.MAX_BYTES + 1), "fleetprofagent1", "too_long"),
        (HELLO, "somebody", "foreign_address"),
        (HELLO, "fleetprofagent", "foreign_address"),
        (HELLO, "dynoconfigclient1", "foreign_address"),
    ],
)
def test_anything_else_is_counted_and_dropped(serve: Serve, speak: Speak, data: bytes, name: str, counter: str) -> None:
    table, endpoint = serve()
    speak(data, name)
    wait_for(endpoint.counters, counter)
    assert table.snapshot() == []


def test_only_allowed_users_are_heard(serve: Serve, speak: Speak) -> None:
    table, endpoint = serve(allowed_uids=frozenset({os.getuid() + 1}))
    speak(HELLO)
    wait_for(endpoint.counters, "refused_uid")
    assert table.snapshot() == []


def test_nothing_is_sent_once_it_is_stopped(serve: Serve, speak: Speak) -> None:
    table, endpoint = serve()
    speak(HELLO)
    end = time.monotonic() + 10
    while not table.snapshot():
        assert time.monotonic() < end
        time.sleep(0.005)
    endpoint.stop()
    assert table.send_to_agent("fleetprofagent1", "query") is False
