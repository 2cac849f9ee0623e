"""Whatever arrives at the Kineto socket, what leaves it is nothing or exactly one answer that no client can die of."""

import contextlib
import os
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_sidecar.kineto.wire import parse
from fleetprof_sidecar.processes.events import Delivered
from fleetprof_sidecar.processes.index import MAX_PROCESSES
from fleetprof_sidecar.processes.views import OrderRefused
from harness.sidecar.kineto_client import BUSY, IDLE, Client, serving
from harness.waiting import wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("patient_clients")

MUTATED = st.tuples(st.sampled_from([IDLE, BUSY]), st.integers(0, 79), st.binary(max_size=12)).map(
    lambda t: t[0][: t[1]] + t[2] + t[0][t[1] + len(t[2]) :]
)
ANYTHING = (
    st.binary(max_size=1100)
    | MUTATED
    | st.sampled_from([IDLE, BUSY])
    | st.just(struct.pack("<Q32siiq", 16, b"ctxt", 0, 1, 0))
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(ANYTHING, st.none() | st.text(max_size=30)), max_size=6))
def test_whatever_arrives_is_answered_by_nothing_or_one_well_formed_reply(
    exchange: list[tuple[bytes, str | None]],
) -> None:
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as directory, serving(directory) as (table, _):
        client, sentinel = Client(directory), Client(directory)
        try:
            client.poll()
            table.mark_trainer(client.process_id)
            for data, config in exchange:
                if config is not None:
                    with contextlib.suppress(OrderRefused):
                        # Whatever a caller might have made: it goes out well-formed or not at all.
                        table.place_order(client.process_id, config, time.time_ns() + 10**12, None)
                client.send(data)
                sentinel.poll()  # answered in order of arrival: what the client was sent is there by now
                try:
                    parse(data)
                    expected = 1
                except ValueError:
                    expected = 0
                replies = client.received()
                assert len(replies) == expected
                for reply, sender in replies:
                    size, kind = struct.unpack_from("<Q32s", reply)
                    assert size == len(reply) - 40
                    assert kind.rstrip(b"\0") in (b"req", b"ctxt")
                    assert reply[40:].isascii() or kind.startswith(b"ctxt")
                    assert sender == f"{directory}/dynolog"
        finally:
            client.close()
            sentinel.close()


def test_an_order_is_given_once_at_an_idle_poll(short_directory: str, client: Callable[..., Client]) -> None:
    with serving(short_directory) as (table, _):
        process = client()
        events: list[object] = []
        table.events.subscribe(events.append)
        assert process.poll() == ""
        table.mark_trainer(process.process_id)
        for order in ("REQUEST_TRACE_ID=x\n", "REQUEST_TRACE_ID=y\n"):  # busy with x, not with a profile of the job's
            table.place_order(process.process_id, order, time.time_ns() + 10**12, None)
            if order.endswith("y\n"):
                assert process.poll(BUSY) == ""
            assert process.poll() == order
            assert process.poll() == ""
        table.events.dispatch()
        assert [event.process_id for event in events if isinstance(event, Delivered)] == [process.process_id] * 2


def test_a_client_that_knows_the_directory_by_another_spelling_is_never_answered(
    short_directory: str, client: Callable[..., Client]
) -> None:
    # Its process would be terminated by an answer whose path does not begin with the string it was given.
    with serving(short_directory) as (_, endpoint):
        other = Client(short_directory + "/.")
        other.send(IDLE)
        client().poll()
        assert other.received() == []
        assert endpoint.counters["foreign_address"] == 1
        other.close()


@pytest.mark.parametrize("name", ["someone", "dynoconfigclient", "dynoconfigclient" + "a" * 65, "dynoconfigclient$(x)"])
def test_other_names_are_never_answered(short_directory: str, client: Callable[..., Client], name: str) -> None:
    with serving(short_directory) as (table, endpoint):
        stranger = client(name)
        stranger.send(IDLE)
        client().poll()
        assert stranger.received() == []
        assert endpoint.counters["foreign_address"] == 1
        assert len(table.snapshot()) == 1


def test_a_sender_without_an_address_does_no_harm(short_directory: str, client: Callable[..., Client]) -> None:
    with serving(short_directory) as (_, endpoint), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unbound:
        unbound.sendto(IDLE, f"{short_directory}/dynolog")
        client().poll()
        assert endpoint.counters["foreign_address"] == 1


def test_a_client_that_is_gone_before_its_answer_is_counted_and_keeps_its_order(
    short_directory: str, client: Callable[..., Client]
) -> None:
    with serving(short_directory) as (table, endpoint):
        process = client()
        process.poll()
        table.mark_trainer(process.process_id)
        table.place_order(process.process_id, "REQUEST_TRACE_ID=x\n", time.time_ns() + 10**12, None)
        process.socket.shutdown(socket.SHUT_RD)  # the kernel now refuses what is sent to it
        process.send(IDLE)
        client().poll()
        assert endpoint.counters["send_errors"] == 1
        assert table.counters["undelivered"] == 1
        assert table.withdraw_order(process.process_id) is True


def test_only_allowed_users_are_served(short_directory: str, client: Callable[..., Client]) -> None:
    with serving(short_directory, allowed_uids=frozenset({os.getuid() + 1})) as (table, endpoint):
        process = client()
        process.send(IDLE)
        deadline = time.monotonic() + 10
        while not endpoint.counters["refused_uid"]:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert table.snapshot() == []
        assert process.received() == []


def test_a_datagram_that_is_too_long_is_counted_and_dropped(
    short_directory: str, client: Callable[..., Client]
) -> None:
    with serving(short_directory) as (_, endpoint):
        process = client()
        process.send(b"x" * 100_000)
        assert process.poll() == ""
        assert endpoint.counters["too_long"] == 1


def test_more_clients_than_the_table_holds_are_still_answered(
    short_directory: str, client: Callable[..., Client]
) -> None:
    with serving(short_directory) as (table, _):
        process = client()
        for number in range(MAX_PROCESSES + 10):
            other = Client(short_directory)
            assert other.poll() == "", number
            other.close()
        assert len(table.snapshot()) == MAX_PROCESSES
        assert table.counters["refused_clients"] == 10
        assert process.poll() == ""


def test_a_table_that_fails_does_not_end_the_loop(
    monkeypatch: pytest.MonkeyPatch, short_directory: str, client: Callable[..., Client]
) -> None:
    with serving(short_directory) as (table, endpoint):
        process = client()
        process.poll()
        with monkeypatch.context() as broken:
            broken.setattr(table, "record_poll", None)
            process.send(IDLE)
            wait_until(lambda: endpoint.counters["internal_errors"], "the failure")
        assert process.poll() == ""


def test_the_socket_is_world_writable_and_gone_at_the_end(short_directory: str) -> None:
    path = Path(short_directory) / "dynolog"
    path.touch()  # a leftover that is not even a socket
    with serving(short_directory):
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o666
    assert not path.exists()


def test_the_path_of_a_successor_is_left_alone(short_directory: str) -> None:
    path = Path(short_directory) / "dynolog"
    with serving(short_directory):
        path.unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as successor:
            successor.bind(str(path))
    assert path.is_socket()
