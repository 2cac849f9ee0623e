"""The reader reads every layout alike, loses only what is broken, counts it, and refuses what passes a limit."""

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.reading.event import AS_EVENTS, Passed
from fleetprof_analyzer.reading.event_stream import EventStream
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from harness.traces.planted.traces import BASE_NS, plant
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture(autouse=True, scope="module", params=["plain", "accelerator"])
def _decoder(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test reads with the accelerator and without it."""
    if request.param == "accelerator" and scanning.accelerator() is None:
        pytest.skip("fleetprof-accelerator is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            patch.setattr(scanning, "accelerator", lambda: None)
        yield


PLANTED = plant(3, iterations=2, segments=3, trace_id="demo-r3")


def read(data: bytes, limits: TraceLimits | None = None) -> tuple[Trace, dict[str, int]]:
    problems = Problems()
    trace = read_trace(io.BytesIO(data), "t", problems, limits)
    return trace, {str(problem.kind): problem.count for problem in problems.entries("t", None)}


def rows(trace: Trace) -> list[tuple[Any, ...]]:
    r = trace.rows
    return [
        (int(c), trace.names[n], trace.places[p], int(s), int(d))
        for c, n, p, s, d in zip(r.category, r.name, r.place, r.start_ns, r.duration_ns, strict=True)
    ]


WHOLE, NO_PROBLEMS = read(PLANTED.text().encode())

LAYOUTS = {
    "compact": lambda: PLANTED.text().replace(", ", ",").replace(": ", ":").encode(),
    "indented": lambda: PLANTED.text(2).encode(),
    "gzip": lambda: PLANTED.gzipped(),
    "gzip in two members": lambda: (
        gzip.compress(PLANTED.text().encode()[:999]) + gzip.compress(PLANTED.text().encode()[999:])
    ),
    "gzip padded with zeros": lambda: PLANTED.gzipped() + bytes(512),
    "byte order mark": lambda: b"\xef\xbb\xbf" + PLANTED.text().encode(),
    "leading white space": lambda: b"\n\n  " + PLANTED.text().encode(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows(layout: str) -> None:
    trace, problems = read(LAYOUTS[layout]())
    assert problems == NO_PROBLEMS == {}
    assert rows(trace) == rows(WHOLE) != []
    assert (trace.metadata, trace.window_start_ns, trace.time_origin) == (
        WHOLE.metadata, WHOLE.window_start_ns, "unix",
    )  # fmt: skip


def test_a_bare_list_has_the_rows_without_what_stands_around_them() -> None:
    text = PLANTED.text()
    trace, problems = read(text[text.index("[", text.index("traceEvents")) : text.rindex("]") + 1].encode())
    assert problems == {}
    assert [(c, n, p, s + BASE_NS, d) for c, n, p, s, d in rows(trace)] == rows(WHOLE)
    assert (trace.metadata.rank, trace.time_origin) == (None, "trace")


def test_metadata_is_found_before_and_behind_the_events() -> None:
    assert (WHOLE.metadata.rank, WHOLE.metadata.world_size, WHOLE.metadata.trace_id) == (3, 4, "demo-r3")
    assert WHOLE.metadata.base_ns == BASE_NS
    assert WHOLE.metadata.device_name == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1000])
def test_blocks_may_be_cut_anywhere(block_bytes: int) -> None:
    text = PLANTED.text(1).encode()
    blocks = (text[at : at + block_bytes] for at in range(0, len(text), block_bytes))
    problems = Problems()
    found = [event for events in EventStream(blocks, problems, TraceLimits(), AS_EVENTS) for event in events]
    names = [None if isinstance(event, Passed) else event.name for event in found]
    assert names == [event["name"] for event in PLANTED.document["traceEvents"]]
    assert problems.entries("t", None) == []


BAD_EVENTS = {
    "NaN": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"x":NaN}}',
    "-inf": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"x":-inf}}',
    "nan(ind)": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"x":-nan(ind)}}',
    "path": r'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"x":"C:\d\u12"}}',
    "surrogate": r'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{},"name":"\ud800"}',
    "control": '{"ph":"X","cat":"kernel","name":"k\x01\n","pid":0,"tid":7,"ts":1,"dur":2,"args":{}}',
}


@pytest.mark.parametrize("bad", BAD_EVENTS)
def test_a_value_that_json_forbids_costs_nothing_and_is_counted(bad: str) -> None:
    text = PLANTED.text().replace('"traceEvents": [', '"traceEvents": [' + BAD_EVENTS[bad] + ", ", 1)
    trace, problems = read(text.encode())
    assert problems == {"repaired_events": 1}
    assert rows(trace)[1:] == rows(WHOLE)
    assert rows(trace)[0][3:] == (BASE_NS + 1000, 2000)


STRAY_QUOTES = b"[" + (b'{"ph":"X","name":"a"b"},' + b'{"ph":"X","name":"good"},' * 3000) * 12
LOST_EVENTS = [
    "5",
    "null",
    '"text"',
    "[1, [2]]",
    '{"ph": "X", "name": 5}',
    '{"name": "a" "b"}',
    '{"ph": X, "cat": "kernel"}',
]
PASSED_EVENTS = [
    '{"ph": "s", "id": 1, "name": 5}',
    '{"ph": "?", "cat": "kernel", "name": 5}',
    '{"ph": "XX"}',
    '{"name": 5}',
    "{}",
]


@pytest.mark.parametrize("bad", LOST_EVENTS)
def test_an_unreadable_event_costs_itself_only(bad: str) -> None:
    text = PLANTED.text().replace('"traceEvents": [', '"traceEvents": [' + bad + ", ", 1)
    trace, problems = read(text.encode())
    assert problems == {"lost_events": 1}
    assert rows(trace) == rows(WHOLE)


@pytest.mark.parametrize("other", PASSED_EVENTS)
def test_an_event_of_another_phase_or_of_none_is_counted_and_passed_over(other: str) -> None:
    text = PLANTED.text().replace('"traceEvents": [', '"traceEvents": [' + other + ", ", 1)
    trace, problems = read(text.encode())
    assert problems == {}
    assert rows(trace) == rows(WHOLE)
    assert trace.event_count == WHOLE.event_count + 1


@pytest.mark.parametrize("position", [0, 0.3, 0.9])
def test_a_stray_quote_costs_its_own_event_only(position: float) -> None:
    events = PLANTED.text().split('{"ph": "X"')
    at = 1 + int(position * (len(events) - 2))
    events[at] = events[at].replace('"name": "', '"name": ""', 1)
    trace, problems = read('{"ph": "X"'.join(events).encode())
    assert problems.keys() == {"lost_events"}
    assert len(WHOLE.rows) - 1 <= len(trace.rows) <= len(WHOLE.rows)


@pytest.mark.parametrize(
    ("times", "kind"),
    [('"ts":"x","dur":1', "bad_times"), ('"dur":1', "bad_times"), ('"ts":1,"dur":-1', "negative_duration"),
     ('"ts":1,"dur":1e14', "absurd_duration"), ('"ts":1e30,"dur":1', "bad_times")],
)  # fmt: skip
def test_a_time_that_cannot_be_is_left_out_and_counted(times: str, kind: str) -> None:
    bad = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,%s,"args":{"stream":"0x0","device":0}}, '.replace(
        "%s", times
    )
    trace, problems = read(PLANTED.text().replace('"traceEvents": [', '"traceEvents": [' + bad, 1).encode())
    assert problems == {kind: 1}
    assert rows(trace) == rows(WHOLE)


def test_a_long_kernel_is_kept_when_nothing_proves_it_wrong() -> None:
    """5 s in a collective: the others were late. Its stream was silent meanwhile, and the window went on."""
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": {"stream": stream}}
        for at, dur, stream in [(0, 10, 7), (20, 5_000_000, 20), (30, 10, 7), (5_000_030, 10, 20)]
    ]
    trace, problems = read(json.dumps(events).encode())
    assert (len(trace.rows), problems) == (4, {})


def test_a_long_kernel_is_left_out_when_its_stream_went_on_without_it() -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": {"stream": 7}}
        for at, dur in [(0, 10), (20, 5_000_000), (30, 10), (6_000_000, 10)]
    ]
    trace, problems = read(json.dumps(events).encode())
    assert (len(trace.rows), problems) == (3, {"absurd_duration": 1})


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(1, len(PLANTED.text()) - 1), st.booleans())
def test_a_cut_file_yields_a_prefix_and_says_so(length: int, zipped: bool) -> None:
    if zipped:
        data = PLANTED.gzipped()
        data = data[: max(1, length * len(data) // len(PLANTED.text()))]
    else:
        data = PLANTED.text().encode()[:length]
    trace, problems = read(data)
    found = [(category, name, place, duration) for category, name, place, _, duration in rows(trace)]
    whole = [(category, name, place, duration) for category, name, place, _, duration in rows(WHOLE)]
    assert found == whole[: len(found)]
    if trace.event_count < WHOLE.event_count:
        assert {"truncated", "not_a_trace", "corrupt_gzip"} & problems.keys()


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_no_mutation_crashes_the_reader(data: st.DataObject) -> None:
    text = bytearray((PLANTED.gzipped() if data.draw(st.booleans()) else PLANTED.text().encode())[:20_000])
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=6))
    trace, _ = read(bytes(text))
    assert (trace.rows.duration_ns >= 0).all()


def test_damage_inside_gzip_yields_what_stands_before() -> None:
    planted = plant(0, iterations=60)
    data = bytearray(planted.gzipped())
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    trace, problems = read(bytes(data))
    assert "corrupt_gzip" in problems
    assert trace.truncated
    assert 0.2 < trace.event_count / len(planted.document["traceEvents"]) < 0.8


@pytest.mark.parametrize(
    ("limits", "data", "words"),
    [
        (
            TraceLimits(decoded_bytes=1 << 20),
            gzip.compress(b'{"traceEvents": [' + b" " * (4 << 20), mtime=0),
            "decompressed",
        ),
        (TraceLimits(event_bytes=1 << 20), b'{"traceEvents": [{"name": "' + b"x" * (8 << 20) + b'"}]}', "one event"),
        (TraceLimits(event_bytes=1 << 20), b'{"traceEvents": [' + b"[" * (8 << 20), "one event"),
        (TraceLimits(event_bytes=1 << 20), b'{"traceEvents": [' + b"1" * (8 << 20), "one event"),
        (
            TraceLimits(metadata_bytes=1 << 20),
            b'{"a": "' + b"x" * (8 << 20) + b'", "traceEvents": []}',
            "before the events",
        ),
        (TraceLimits(metadata_bytes=1 << 20), b"{" + b'"a":{' * (2 << 20), "before the events"),
        (
            TraceLimits(metadata_bytes=1 << 20),
            b'{"traceEvents": [], "a": "' + b"x" * (8 << 20) + b'"}',
            "after the events",
        ),
        (TraceLimits(lost_events=10), STRAY_QUOTES, "without an end"),
        (TraceLimits(events=10), PLANTED.text().encode(), "number of events"),
        (TraceLimits(kept_rows=10), PLANTED.text().encode(), "operators, annotations and kernels"),
        (TraceLimits(name_bytes=10), PLANTED.text().encode(), "names of events"),
    ],
)
def test_what_passes_a_limit_is_refused_by_name(limits: TraceLimits, data: bytes, words: str) -> None:
    with pytest.raises(LimitExceeded, match=f"{words}.* passes the limit of"):
        read(data, limits)


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"", "empty_file"), (b"  \n", "empty_file"), (gzip.compress(b"", mtime=0), "empty_file"),
     (b"hello", "not_a_trace"), (b"{}", "not_a_trace"), (b'{"traceEvents": 5}', "not_a_trace"),
     (b'{"a": {"traceEvents": []}}', "not_a_trace"),
     (b'{"traceEvents": []}', "no_events"), (b"[]", "no_events"), (b"\x1f\x8b", "truncated")],
)  # fmt: skip
def test_what_is_no_trace_is_named(data: bytes, kind: str) -> None:
    trace, problems = read(data)
    assert len(trace.rows) == 0
    assert kind in problems


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "the trace holds no event"),
        ([{"name": "add", "ph": "X", "ts": 1.5, "dur": 2.5, "tid": 1, "pid": "CPU functions", "args": {}}],
         "none of its 1 events has both a duration (dur) and a category (cat) that is known"),
        ([{"name": "add", "ph": phase, "cat": "cpu_op", "ts": 1.5, "tid": 1, "pid": 1} for phase in "BE"],
         "none of its 2 events has both a duration (dur) and a category (cat) that is known"),
    ],
)  # fmt: skip
def test_a_trace_without_rows_says_what_they_lack(events: list[dict[str, Any]], words: str) -> None:
    problems = Problems()
    for text in (json.dumps(events), json.dumps({"traceEvents": events})):
        read_trace(io.BytesIO(text.encode()), "t", problems)
        (entry,) = problems.entries("t", None)
        assert (entry.kind, entry.message.startswith(words)) == ("no_events", True)


def test_a_second_recording_in_a_file_is_said() -> None:
    document = json.loads(PLANTED.text())
    text = json.dumps(document)
    trace, problems = read((text + "\n" + text).encode())
    assert len(trace.rows) == len(read(text.encode())[0].rows)
    assert trace.metadata.rank == document["distributedInfo"]["rank"]
    assert problems == {"second_recording": 1}


def test_a_base_time_that_no_clock_can_show_is_left_out() -> None:
    text = (
        b'{"baseTimeNanoseconds": 9999999999999999999, "x": nonsense, "traceEvents": ['
        + json.dumps({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}).encode()
        + b"]}"
    )
    trace = read_trace(io.BytesIO(text), "t", Problems())
    assert trace.rows.start_ns.tolist() == [1000]
