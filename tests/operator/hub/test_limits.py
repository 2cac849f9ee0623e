"""The shares of one pod, one namespace and one address in the hub: the rules themselves, without a network."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_operator.hub.access.call_refusals import CallRefusal
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.sidecars.holdings import TELEMETRY_BYTES, Holdings, OverBudget
from fleetprof_operator.hub.sidecars.message_weight import MAX_ELEMENTS, weigh_message
from fleetprof_operator.hub.sidecars.messages import ProtocolError, parse_message
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRegistry
from fleetprof_operator.hub.sidecars.stream_seats import DIALS_AT_ONCE, MOST_OF_POD, NoSeat, StreamSeats
from hypothesis import given
from hypothesis import strategies as st

POD = Principal(namespace="team", pod_name="a", pod_uid="u-a")


class Link:
    def __init__(self) -> None:
        self.why = ""

    def send(self, message: pb.HubMessage) -> None:
        pass

    def close(self, why: str) -> None:
        self.why = why


def hello(sidecar_id: str, pod: str = "a", namespace: str = "team", **fields: Any) -> pb.Hello:
    identity = pb.Identity(namespace=namespace, pod_name=pod, pod_uid=f"u-{pod}")
    return pb.Hello(protocol_version=1, sidecar_id=sidecar_id, identity=identity, **fields)


def processes(count: int, text: str = "") -> list[pb.Process]:
    return [pb.Process(process_id=f"p{number}", device_name=text) for number in range(count)]


# ---------------------------------------------------------------- buckets


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(burst=10, per_s=2, now_s=0)
    assert [bucket.take(5, 0), bucket.take(5, 0), bucket.take(4, 0)] == [0, 0, 2]
    assert bucket.take(0, 2) == 0
    assert [bucket.take_if_there(1, 2), bucket.take_if_there(1, 2.5), bucket.take_if_there(1, 2.5)] == [
        False,
        True,
        False,
    ]
    assert (bucket.is_full(7), bucket.is_full(8)) == (False, True)
    assert bucket.take(1000, 100) <= 5  # nobody waits for longer than the whole burst takes


# ---------------------------------------------------------------- weights


def training_process(number: int) -> pb.Process:
    """A sidecar's word on a rank on a GPU."""
    now = 1_795_859_400 * 10**9
    return pb.Process(
        process_id=f"{number}-0123456789ab",
        pid=number,
        rank=number,
        local_rank=number % 8,
        world_size=1024,
        polls_kineto=True,
        has_agent=True,
        torch_version="2.15.0+cu128",
        python_version="3.11.9",
        device_kind="cuda",
        device_name="NVIDIA H100 80GB HBM3",
        first_seen_unix_ns=now,
        last_poll_unix_ns=now,
        poll_interval_ns=10**9,
        memory_headroom_bytes=10**11,
        step=pb.StepState(step=10**5, at_unix_ns=now, iteration_ns=10**8, steps_per_iteration=1),
    )


def test_as_many_fit_as_the_page_of_limits_says() -> None:
    page = (Path(__file__).parents[3] / "docs/limits.md").read_text()
    found = re.search(r"([0-9]+) pods with ([0-9]+) processes each\. 1 MiB per sidecar: ([0-9]+) processes", page)
    assert found is not None
    pods, each, most = map(int, found.groups())

    def weigh(count: int) -> int:
        registry = SidecarRegistry(HubSettings())
        ranks = [training_process(number) for number in range(count)]
        registry.connect(hello("s", "llama-workers-0-abcde", processes=ranks), Link(), 0)
        return registry.holdings.total_bytes

    assert pods <= HubSettings().max_namespace_bytes // weigh(each) < pods * 21 // 20
    weigh(most)
    with pytest.raises(OverBudget):
        weigh(most * 21 // 20)


MESSAGES = [
    pb.SidecarMessage(hello=hello("s", processes=processes(3), held=[pb.CaptureEvent(capture_id="c")] * 4)),
    pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=processes(7, "x" * 100), devices=[pb.DeviceSample()] * 2)),
    pb.SidecarMessage(event=pb.CaptureEvent(capture_id="c", process_id="p", rank=3, state=pb.ARMED)),
    pb.SidecarMessage(upload_request=pb.UploadRequest(parts=[pb.Part(size_bytes=1, sha256=bytes(32))] * 9)),
    pb.SidecarMessage(upload_done=pb.UploadDone(etags=["a"] * 5)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.WhichOneof("body"))
def test_more_elements_weigh_more(message: pb.SidecarMessage) -> None:
    more = pb.SidecarMessage()
    more.CopyFrom(message)
    kind = message.WhichOneof("body")
    weight = weigh_message(message.SerializeToString()).total
    assert weight > len(message.SerializeToString())
    if kind == "heartbeat":
        more.heartbeat.processes.add(process_id="one more")
        assert weigh_message(more.SerializeToString()).total >= weight + 512
    if kind == "upload_request":
        more.upload_request.parts.add(size_bytes=1)
        assert weigh_message(more.SerializeToString()).total >= weight + (16 << 10)


@pytest.mark.attack
@pytest.mark.parametrize(
    "make_message",
    [
        lambda: pb.SidecarMessage(hello=pb.Hello(held=[pb.CaptureEvent()] * 500_000)),
        lambda: pb.SidecarMessage(hello=pb.Hello(processes=[pb.Process()] * 500_000)),
        lambda: pb.SidecarMessage(heartbeat=pb.Heartbeat(devices=[pb.DeviceSample()] * 500_000)),
        lambda: pb.SidecarMessage(upload_request=pb.UploadRequest(parts=[pb.Part()] * 500_000)),
        lambda: pb.SidecarMessage(upload_done=pb.UploadDone(etags=[""] * 500_000)),
    ],
    ids=["events", "processes", "devices", "parts", "etags"],
)
def test_a_message_that_would_become_much_larger_is_not_decoded(make_message: Callable[[], pb.SidecarMessage]) -> None:
    message = make_message()
    data = message.SerializeToString()
    assert len(data) < 1 << 20
    with pytest.raises(ProtocolError, match=f"more than {MAX_ELEMENTS} elements"):
        weigh_message(data)
    body = message.WhichOneof("body")
    assert body is not None
    part = data[: 2 * MAX_ELEMENTS]
    with pytest.raises(ProtocolError):  # nor when it comes as many small ones of a kind, which add up
        weigh_message(b"".join([_one(body) for _ in range(MAX_ELEMENTS + 1)]) + part)


def _one(body: str) -> bytes:
    inner: dict[str, pb.SidecarMessage] = {
        "hello": pb.SidecarMessage(hello=pb.Hello(held=[pb.CaptureEvent()])),
        "heartbeat": pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=[pb.Process()])),
        "upload_request": pb.SidecarMessage(upload_request=pb.UploadRequest(parts=[pb.Part()])),
        "upload_done": pb.SidecarMessage(upload_done=pb.UploadDone(etags=[""])),
    }
    return inner[body].SerializeToString()


@given(data=st.binary(max_size=300))
def test_no_bytes_raise_anything_when_they_are_weighed(data: bytes) -> None:
    assert weigh_message(data).total >= len(data)


@given(st.data())
def test_damaged_messages_are_weighed_too(data: st.DataObject) -> None:
    whole = bytearray(data.draw(st.sampled_from(MESSAGES)).SerializeToString())
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert weigh_message(bytes(whole)).total >= len(whole)


# ---------------------------------------------------------------- what is kept


def test_holdings_are_bounded_by_owner_and_namespace() -> None:
    holdings = Holdings(100 << 10, 150 << 10)
    holdings.hold("team", "a", 100 << 10)
    with pytest.raises(OverBudget, match=r"keep 101 KiB of this sidecar, at most 100"):
        holdings.hold("team", "b", 101 << 10)
    with pytest.raises(OverBudget, match="of namespace team"):
        holdings.hold("team", "b", 51 << 10)
    holdings.hold("team", "b", 50 << 10)
    holdings.hold("rival", "c", 100 << 10)  # another's share is untouched
    holdings.hold("team", "a", 10 << 10)
    assert (holdings.total_bytes, holdings.room_in("team", "b")) == (160 << 10, 140 << 10)
    for owner in "abc":
        holdings.release(owner)
    assert holdings.total_bytes == 0


@pytest.mark.attack
def test_one_pod_has_one_record_whatever_ids_its_sidecars_take() -> None:
    registry = SidecarRegistry()
    links = []
    for number in range(500):
        links.append(Link())
        registry.connect(
            hello(f"s{number}", processes=processes(200, "x" * 200)), links[-1], number, proved_pod_uid="u-a"
        )
    assert [record.sidecar_id for record in registry.list()] == ["s499"]
    assert [link.why for link in links].count("replaced by a newer stream of the same pod") == 499
    assert registry.holdings.total_bytes <= 1 << 20


def test_without_a_proved_pod_every_sidecar_has_its_record() -> None:
    # Local mode: one user, one token, and as many sidecars on a machine as there are jobs.
    registry = SidecarRegistry()
    for number in range(5):
        registry.connect(hello(f"s{number}"), Link(), number)
    assert len(registry.list()) == 5


@pytest.mark.attack
def test_of_a_lost_sidecar_only_its_name_is_kept_and_of_them_a_number() -> None:
    registry = SidecarRegistry(HubSettings(max_streams_per_namespace=10))
    registry.connect(hello("other", "other", "rival"), kept := Link(), 0, proved_pod_uid="u-other")
    for number in range(50):
        pod = f"pod-{number}"
        record = registry.connect(hello(f"s{number}", pod, processes=processes(100)), link := Link(), number)
        registry.disconnect(record, link, number)
        assert not record.processes
    there = registry.list_of("team")
    assert sorted(record.lost_unix_ns for record in there) == list(range(40, 50))  # the youngest
    telemetry_bytes = 10 * 100 * TELEMETRY_BYTES  # which stands for a while yet
    assert registry.holdings.total_bytes < (100 << 10) + telemetry_bytes
    registry.forget(45)
    assert len(registry.list_of("team")) == 5
    registry.forget(1000)
    assert [record.sidecar_id for record in registry.list()] == ["other"]
    assert not kept.why


def test_lost_sidecars_make_room_for_those_that_are_there() -> None:
    registry = SidecarRegistry(HubSettings(max_namespace_bytes=200 << 10))
    for number in range(60):
        record = registry.connect(hello(f"s{number}", f"pod-{number}"), link := Link(), number)
        registry.disconnect(record, link, number)
    assert registry.connect(hello("new", "new", processes=processes(100)), Link(), 100).processes


def test_a_part_of_a_hello_does_not_keep_all_of_it() -> None:
    registry = SidecarRegistry()
    full = hello("s", processes=processes(2), held=[pb.CaptureEvent(message="x" * 1000)] * 100)
    record = registry.connect(full, Link(), 0)
    assert record.identity == full.identity
    assert list(record.processes.values()) == list(full.processes)
    assert record.identity is not full.identity
    full.Clear()
    assert (record.identity.pod_name, len(record.processes)) == ("a", 2)


# ---------------------------------------------------------------- seats


def test_a_pod_has_few_streams_and_a_namespace_its_share() -> None:
    seats = StreamSeats(max_per_namespace=5)
    now = 0.0

    def sit(principal: Principal) -> Any:
        seat = seats.take(principal, now)
        seat.__enter__()
        return seat

    held = [sit(POD) for _ in range(MOST_OF_POD)]
    with pytest.raises(NoSeat, match="has 3 streams; a pod has one sidecar") as refused:
        sit(POD)
    assert refused.value.kind is CallRefusal.STREAMS
    held += [sit(Principal(namespace="team", pod_uid=f"u-{n}")) for n in range(2)]
    with pytest.raises(NoSeat, match="namespace team has 5 streams"):
        sit(Principal(namespace="team", pod_uid="u-9"))
    sit(Principal(namespace="rival", pod_uid="u-8"))
    held.pop().__exit__(None, None, None)
    sit(Principal(namespace="team", pod_uid="u-9"))
    for _ in range(20):
        sit(Principal())  # local mode


def test_a_pod_that_dials_all_the_time_waits() -> None:
    seats = StreamSeats(100)
    for _ in range(DIALS_AT_ONCE):
        with seats.take(POD, 0.0):
            pass
    with pytest.raises(NoSeat, match="dials more than") as refused, seats.take(POD, 0.0):
        pass
    assert refused.value.kind is CallRefusal.OFTEN
    with seats.take(POD, 2.0):
        pass


@pytest.mark.attack
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (pb.SidecarMessage(heartbeat=pb.Heartbeat(processes=[pb.Process(process_id="p", device_name="x" * 257)])),
         "process: a text of 257 characters, at most 256"),
        (pb.SidecarMessage(hello=hello("s", held=[pb.CaptureEvent()] * 4097)), "hello.held: at most 4096"),
        (pb.SidecarMessage(upload_done=pb.UploadDone(capture_id="c", process_id="p", etags=["a"] * 1025)),
         "upload_done.etags: at most 1024"),
        (pb.SidecarMessage(upload_request=pb.UploadRequest(capture_id="c", process_id="p", parts=[pb.Part()] * 1025)),
         "upload_request.parts: at most 1024"),
        (pb.SidecarMessage(hello=pb.Hello(protocol_version=1, sidecar_id="s", identity=pb.Identity(
            labels={f"{n}": "x" * 1000 for n in range(100)}))), "hello.identity: 10"),
    ],
)  # fmt: skip
def test_what_is_too_long_is_refused(body: pb.SidecarMessage, says: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse_message(body.SerializeToString())
    assert str(refused.value).startswith(says)
