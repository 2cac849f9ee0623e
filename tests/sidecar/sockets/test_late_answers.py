"""Kineto takes one answer at each poll, the oldest: one that it has given up must never be left for the next."""

import time
from collections import Counter
from collections.abc import Callable

import pytest
from fleetprof_sidecar.sockets import kineto_endpoint
from fleetprof_sidecar.sockets.datagrams import Datagram, DatagramSocket
from harness.sidecar.kineto_client import IDLE, Client, serving


def test_a_poll_that_its_client_has_given_up_is_not_answered_and_leaves_the_order(
    short_directory: str, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer would be taken for that of the next poll: an order would arrive late, and nobody would know."""
    with serving(short_directory) as (table, endpoint):
        process, other = client(), client()
        process.poll()
        table.mark_trainer(process.process_id)
        table.place_order(process.process_id, "REQUEST_TRACE_ID=x\n", time.time_ns() + 10**12, None)
        before = table.get(process.process_id)
        assert before is not None
        monkeypatch.setattr(kineto_endpoint, "ANSWER_WITHIN_NS", -1)
        process.send(IDLE)
        other.send(IDLE)
        deadline = time.monotonic() + 10
        while endpoint.counters["given_up"] < 2:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        monkeypatch.setattr(kineto_endpoint, "ANSWER_WITHIN_NS", 10 * 10**9)
        assert (process.received(), other.received()) == ([], [])
        after = table.get(process.process_id)
        assert after is not None
        assert after.last_poll_unix_ns > before.last_poll_unix_ns  # it lives
        assert process.poll() == "REQUEST_TRACE_ID=x\n"


def test_after_an_answer_that_may_have_come_too_late_one_poll_is_left_without(
    short_directory: str, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else this client would take every later answer one poll late: it takes one at each poll, the oldest."""
    with serving(short_directory) as (table, endpoint):
        process, other = client(), client()
        process.poll()
        table.mark_trainer(process.process_id)
        ages = iter([0, 0, 10**12])  # when it is looked at, before the answer, and behind it
        monkeypatch.setattr(Datagram, "age_ns", lambda _: next(ages, 0))
        assert process.poll() == ""
        table.place_order(process.process_id, "REQUEST_TRACE_ID=x\n", time.time_ns() + 10**12, None)

        process.send(IDLE)
        assert other.poll() == ""  # answered in order of arrival
        assert process.received() == []
        assert endpoint.counters["left_out"] == 1
        assert process.poll() == "REQUEST_TRACE_ID=x\n"


def test_how_long_a_datagram_waited_is_the_kernels_word(short_directory: str, client: Callable[..., Client]) -> None:
    waited = []

    def handle(datagram: Datagram) -> None:
        waited.append(datagram.age_ns())
        if len(waited) == 1:
            second.send(IDLE)
            time.sleep(0.2)

    served = DatagramSocket(f"{short_directory}/dynolog", 1024, Counter())
    served.start(handle)
    try:
        first, second = client(), client()
        first.send(IDLE)
        deadline = time.monotonic() + 10
        while len(waited) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        served.stop()
    assert waited[1] >= 0.2 * 10**9
