"""Samples of the training thread, and the line of code that the report names for them."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.rank.communication.extraction import encode_within
from fleetprof_analyzer.rank.communication.operations import RankOperations, decode, encode
from fleetprof_analyzer.rank.host.by_iteration import ThreadTimes, find_late_place, sum_up
from fleetprof_analyzer.rank.host.hot_path import Weight, find_hot_path
from fleetprof_analyzer.rank.host.track import Chain, Track, read_track, within
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.trace.own_code import FOUNDATION, INSTALLED, OWN, is_own_frame, tell_owner
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.views.words.straggler_words import list_stragglers
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import Silence, Stages, StageTime
from fleetprof_api.report.stragglers import Straggler, Stragglers
from fleetprof_api.samples import CodePlace, RankSamples, ThreadColumns
from harness.traces.planted.faults import draw, operations_of
from harness.traces.planted.loop import US, iteration, measure, read, row
from harness.traces.planted.shapes import JobShape
from harness.traces.straggler_sections import stragglers_of

SITE = "/opt/venv/lib/python3.11/site-packages"
LIBRARY = "/usr/lib/python3.11"
MAIN, READ, PARSE = ("t.py", "main", 9), ("t.py", "read_batch", 41), ("t.py", "parse", 70)


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("/home/me/train.py", OWN),
        ("train.py", OWN),
        ("/workspace/torch_models/train.py", OWN),
        ("/srv/me/library/python3/mine.py", OWN),
        ("/tmp/ipykernel_12/3456.py", OWN),
        ("<ipython-input-3-abc>", OWN),
        (f"{SITE}/transformers/trainer.py", INSTALLED),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", INSTALLED),
        (f"{SITE}/torch/nn/modules/module.py", FOUNDATION),
        (f"{SITE}/torchvision/models/resnet.py", INSTALLED),
        (f"{LIBRARY}/threading.py", FOUNDATION),
        ("/opt/python/cpython-3.11/lib/python3.11/json/decoder.py", FOUNDATION),
        ("<frozen runpy>", FOUNDATION),
        ("<string>", FOUNDATION),
        ("", FOUNDATION),
    ],
)
def test_whose_code_it_is(file: str, owner: int) -> None:
    assert tell_owner(file) == owner


def samples_of(stacks: list[list[tuple[str, str, int]]], *samples: tuple[int, int | None]) -> RankSamples:
    """A rank's samples: stacks, the innermost frame first, and (time in µs, stack) of each look."""
    places = sorted({place for stack in stacks for place in stack})
    return RankSamples(
        rank=0,
        thread=ThreadColumns(at_unix_ns=[at * US for at, _ in samples], stack=[stack for _, stack in samples]),
        places=[CodePlace(file=file, function=function, line=line) for file, function, line in places],
        stacks=[[places.index(place) for place in stack] for stack in stacks],
    )


def track_of(*arguments: Any) -> Track:
    track = read_track(samples_of(*arguments))
    assert track is not None
    return track


HUGGING = (f"{SITE}/transformers/trainer.py", "Trainer.train", 5)
MODULE = (f"{SITE}/torch/nn/modules/module.py", "Module._call_impl", 6)
QUEUE = (f"{LIBRARY}/queue.py", "Queue.get", 7)


@pytest.mark.parametrize(
    ("stack", "chain"),
    [
        ([QUEUE, READ, MODULE, MAIN], (MAIN, READ)),
        ([QUEUE, HUGGING, MODULE], (HUGGING,)),
        ([QUEUE, MODULE], (QUEUE,)),
        ([], None),
        ([("t.py", "read_batch.<locals>.<listcomp>.<genexpr>", 41), READ, MAIN], (MAIN, READ)),
        ([("t.py", "<genexpr>", 41), READ, MAIN], (MAIN, READ)),
        ([("t.py", "read_batch.<locals>.<lambda>", 44), READ, MAIN], (MAIN, READ, ("t.py", "read_batch", 44))),
    ],
    ids=["own", "installed", "neither", "none", "comprehension", "and before Python 3.11", "lambda"],
)
def test_of_a_stack_the_users_own_frames_count(stack: Any, chain: Chain | None) -> None:
    track = track_of([stack], (1, 0), (2, 0))
    assert within(track, [(0, 9 * US)]) == ([] if chain is None else [(chain, 1), (chain, US)])


def test_a_sample_stands_for_the_time_since_the_one_before_and_within_the_span() -> None:
    """The sampler waits for the interpreter: what it sees then has held it."""
    track = track_of([[MAIN], [READ]], (10, 0), (20, 1), (90, 1), (100, None), (110, 0))
    assert within(track, [(15 * US, 105 * US), (105 * US, 200 * US)]) == [
        ((READ,), 5 * US), ((READ,), 70 * US), ((MAIN,), 5 * US)
    ]  # fmt: skip


@pytest.mark.attack
@pytest.mark.parametrize(
    "wrong",
    [
        {"places": []},
        {"stacks": []},
        {"stacks": [[7, -1]]},
        {"thread": ThreadColumns(at_unix_ns=[-5, 2**70, 2**62, 1], stack=[0, 0, 0, -9])},
        {"thread": ThreadColumns(at_unix_ns=[1, 2, 3], stack=[0])},
    ],
)
def test_samples_that_make_no_sense_tell_nothing(wrong: dict[str, Any]) -> None:
    samples = samples_of([[MAIN]], (1, 0), (2, 0))
    for name, value in wrong.items():
        setattr(samples, name, value)
    track = read_track(samples)
    assert track is None or within(track, [(0, 1 << 62)]) == []


# What each chain has of the time, and the functions that it leads to with their lines.
@pytest.mark.parametrize(
    ("weights", "path"),
    [
        ({(MAIN, READ, PARSE): 8, (MAIN, READ): 2}, [MAIN, READ, PARSE]),
        ({(MAIN, READ, PARSE): 4, (MAIN, READ): 4, (MAIN,): 2}, [MAIN, READ]),
        ({(MAIN, ("t.py", "read_batch", 40)): 3, (MAIN, READ): 4, (MAIN,): 2}, [MAIN, READ]),
        ({(("t.py", "main", 8), READ): 3, (MAIN, READ): 4}, [MAIN, READ]),
        ({(("a.py", "f", 1),): 1, (("b.py", "f", 1),): 1, (("c.py", "f", 1),): 1}, None),
        ({(MAIN, READ): 5, (("t.py", "main", 12),): -5}, [MAIN, READ]),
        ({(MAIN, READ): -5}, None),
        ({}, None),
    ],
    ids=["the innermost", "spread below", "over lines", "from two lines", "nowhere", "others wait", "less", "nothing"],
)
def test_the_line_is_where_most_of_the_time_is(weights: dict[Chain, float], path: Any) -> None:
    found = find_hot_path({chain: Weight(weight) for chain, weight in weights.items()})
    assert (None if found is None else found.places) == path


def looks(*phases: tuple[int, int, int | None], every: int = 100) -> list[tuple[int, int | None]]:
    """A look every so many µs: (from, to, stack) of each phase."""
    return [(at, stack) for start, end, stack in phases for at in range(start + every // 2, end, every)]


def test_a_silence_has_the_line_in_which_the_thread_was() -> None:
    events = [
        event
        for at in (0, 10_000)
        for event in [
            row(f"ProfilerStep#{at}", at, at + 10_000, category="user_annotation"),
            row("Optimizer.zero_grad#SGD.zero_grad", at, at + 100, category="user_annotation"),
            row("aten::randn", at + 5_000, at + 5_100),
            row("aten::linear", at + 5_100, at + 9_000, sequence=at + 1),
            row("autograd::engine::evaluate_function: AddmmBackward0", at + 9_000, at + 9_500,
                sequence=at + 1),
        ]
    ]  # fmt: skip
    phases = [(at + a, at + b, stack) for at in (0, 10_000) for a, b, stack in ((0, 5_000, 1), (5_000, 9_000, 0))]
    track = track_of([[MAIN], [QUEUE, READ, MAIN]], *looks(*phases))
    silence = measure(read(events), track).silences[0]
    assert (silence.after, silence.before) == ("Optimizer.zero_grad#SGD.zero_grad", "aten::randn")
    assert silence.place == PlaceInCode(file="t.py", line=41, function="read_batch", samples=98, of_samples=98)
    assert measure(read(events)).silences[0].place is None


def test_the_stage_of_data_loading_has_its_line() -> None:
    events = [event for number in (0, 1) for event in iteration(10_000 * number, number)]
    phases = [(at + a, at + b, stack) for at in (0, 10_000) for a, b, stack in ((0, 55, 1), (55, 1000, 0))]
    track = track_of([[MAIN], [PARSE, READ, MAIN]], *looks(*phases, every=10))
    found = measure(read(events), track).loading_place
    assert found is not None
    assert (found.file, found.line, found.function) == PARSE[:1] + PARSE[2:] + PARSE[1:2]
    assert measure(read(events)).loading_place is None


CONFUSION, CALLED = ("t.py", "Net.confusion", 41), ("t.py", "training_step", 30)


@pytest.mark.parametrize(
    ("share", "place"),
    [(0.8, CONFUSION), (0.6, CONFUSION), (0.4, CALLED), (0.0, CALLED)],
)
def test_a_stage_of_operators_has_the_line_that_holds_most_of_it(share: float, place: tuple[str, str, int]) -> None:
    """Stacks are (0) in training_step, (1) in what it calls, (2) in the loop; forward is 100 to 800 µs of 1,000."""
    events = [
        row(f"ProfilerStep#{at}", at, at + 1_000, category="user_annotation") for at in range(0, 10_000, 1_000)
    ] + [
        one
        for at in range(0, 10_000, 1_000)
        for one in (
            row("aten::linear", at + 100, at + 800, sequence=at + 1),
            row("autograd::engine::evaluate_function: AddmmBackward0", at + 800, at + 950, sequence=at + 1),
        )
    ]
    phases = [
        (at + start, at + end, stack)
        for at in range(0, 10_000, 1_000)
        for start, end, stack in (
            (100, 100 + int(700 * share), 1), (100 + int(700 * share), 800, 0), (800, 950, 2)
        )
    ]  # fmt: skip
    stacks = [[CALLED, MAIN], [CONFUSION, CALLED, MAIN], [MAIN]]
    track = track_of(stacks, *looks(*phases, every=10))
    found = {stage.stage: stage.place for stage in measure(read(events), track).stages}
    forward = found["forward"]
    assert forward is not None
    assert (forward.file, forward.function, forward.line) == place
    assert found["backward"] is None  # the loop's own line
    few = track_of(stacks, *looks(*phases, every=500)[:9])
    assert {stage.place for stage in measure(read(events), few).stages} == {None}


# ---------------------------------------------------------------- where the trace has stacks itself


def frame(name: str, start: int, end: int) -> dict[str, Any]:
    return row(name, start, end, category="python_function")


# Names as PyTorch writes them: the line is the function's first, and known places of modules are cut off.
@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("train.py(13): read_batch", True),
        ("src/data/batches.py(7): Batches.__getitem__", True),
        ("/home/me/train.py(13): <module>", True),
        ("torch/nn/modules/module.py(1773): _wrapped_call_impl", False),
        ("threading.py(1002): _bootstrap", False),
        ("json/decoder.py(332): decode", False),
        ("transformers/trainer.py(2200): train", False),
        ("numpy.py(1): mine", True),
        (f"{SITE}/anything/x.py(3): f", False),
        ("fleetprof_agent/steps/hook.py(83): record_step", False),
        ("<built-in function sleep>", False),
        ("nn.Module: Linear_0", False),
        ("<string>(1): f", False),
        ("train.py(13) read_batch", False),
    ],
)
def test_whose_code_a_frame_of_a_trace_is(name: str, is_own: bool) -> None:
    assert is_own_frame(name) is is_own


@pytest.mark.parametrize("accelerated", [True, False])
def test_of_frames_the_long_ones_of_modules_and_the_users_code_are_kept_and_apart(
    accelerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not accelerated:
        monkeypatch.setattr(scanning, "accelerator", lambda: None)
    events = [
        frame("train.py(9): main", 0, 9_000), frame("train.py(5): short", 10, 109),
        frame("train.py(5): short", 200, 300), frame("torch/x.py(1): f", 400, 9_000),
        frame("<built-in function collect>", 500, 520), row("aten::mm", 600, 700),
        frame("nn.Module: Linear_0", 590, 710), frame("nn.Module: ReLU_0", 720, 730),
    ]  # fmt: skip
    trace = read(events)
    kept = ["train.py(9): main", "train.py(5): short", "nn.Module: Linear_0"]
    assert [trace.names[name] for name in trace.frames.name] == kept
    assert (trace.frames.start_ns.tolist(), trace.frames.duration_ns.tolist()) == (
        [0, 200 * US, 590 * US],
        [9_000 * US, 100 * US, 120 * US],
    )
    assert [trace.names[name] for name in trace.rows.name] == ["<built-in function collect>", "aten::mm"]
    assert sorted(trace.names) == sorted([*kept, "<built-in function collect>", "aten::mm"])


def test_without_samples_the_traces_frames_name_the_function_of_a_silence() -> None:
    events = [
        event
        for at in (0, 10_000)
        for event in [
            row(f"ProfilerStep#{at}", at, at + 10_000, category="user_annotation"),
            row("Optimizer.zero_grad#SGD.zero_grad", at, at + 100, category="user_annotation"),
            frame("train.py(9): main", at + 10, at + 9_900),
            frame("train.py(40): read_batch", at + 150, at + 4_900),
            frame("train.py(44): parse", at + 200, at + 1_000),
            row("aten::randn", at + 5_000, at + 5_100),
            row("aten::linear", at + 5_100, at + 9_000, sequence=at + 1),
            row("autograd::engine::evaluate_function: AddmmBackward0", at + 9_000, at + 9_500,
                sequence=at + 1),
        ]
    ]  # fmt: skip
    silence = measure(read(events)).silences[0]
    assert silence.place == PlaceInCode(file="train.py", line=40, function="read_batch")


# ---------------------------------------------------------------- beside others

SPANS = [(n * 10_000 * US, (n + 1) * 10_000 * US) for n in range(20)]
BACKWARD, FETCH = ("t.py", "main", 12), ("t.py", "fetch", 50)
STACKS = [[MAIN], [READ, MAIN], [BACKWARD], [FETCH, MAIN]]


def times_of(*phases: tuple[int, int, int], iterations: range = range(20)) -> ThreadTimes:
    """The same in each of the iterations; in the others the thread waits in `backward`."""
    samples = []
    for number in range(20):
        here = phases if number in iterations else ((0, 10_000, 2),)
        samples += looks(*((10_000 * number + a, 10_000 * number + b, stack) for a, b, stack in here))
    return sum_up(track_of(STACKS, *samples), SPANS)


USUAL = times_of((0, 1_000, 0), (1_000, 2_000, 3), (2_000, 10_000, 2))
NEVER = ThreadTimes()


@pytest.mark.parametrize(
    ("mine", "peers", "late_us", "place"),
    [
        (times_of((0, 6_000, 1), (6_000, 10_000, 2)), [USUAL] * 3, 6_000, READ),
        (times_of((0, 6_000, 3), (6_000, 10_000, 2)), [USUAL], 5_000, FETCH),  # more of what all do
        (times_of((0, 6_000, 1), (6_000, 10_000, 2)), [NEVER, USUAL], 6_000, READ),
        (times_of((0, 6_000, 1), (6_000, 10_000, 2)), [NEVER], 6_000, None),
        (NEVER, [USUAL], 6_000, None),
        (USUAL, [USUAL], 6_000, None),
        (times_of((0, 200, 1), (200, 1_000, 0), (1_000, 2_000, 3), (2_000, 10_000, 2)), [USUAL], 6_000, None),
    ],
    ids=["its own", "more of it", "one peer", "no peer", "no samples", "the same", "too little"],
)
def test_a_late_rank_is_where_its_peers_are_not(
    mine: ThreadTimes, peers: list[ThreadTimes], late_us: int, place: Any
) -> None:
    found = find_late_place(mine, peers, [range(20)] * (1 + len(peers)), late_us * US)
    assert (None if found is None else (found.file, found.function, found.line)) == place
    if found is not None:
        assert 0 < found.samples <= found.of_samples == 20 * 100


def test_only_late_iterations_count() -> None:
    mine = times_of((0, 6_000, 1), (6_000, 10_000, 2), iterations=range(4))
    late = find_late_place(mine, [USUAL], [range(4), range(4)], 6_000 * US)
    assert late is not None
    assert (late.function, late.samples, late.of_samples) == ("read_batch", 4 * 60, 400)
    assert find_late_place(mine, [USUAL], [range(8, 20), range(8, 20)], 9_000 * US) is None
    assert find_late_place(mine, [USUAL], [[], []], 6_000 * US) is None


def test_samples_are_bounded_in_a_summary() -> None:
    stacks = [[(f"{'f' * 190}{n}.py", "f", n)] for n in range(600)]
    samples = [(100 * n, n) for n in range(600)]
    times = sum_up(track_of(stacks, *samples), [(0, 60_000 * US)])
    assert len(times.places) == 300
    assert {place for chain in times.chains for place in chain} == set(range(300))


def late_job(thread: bool = True) -> list[RankOperations]:
    """Four ranks, of which one has a slow host; each with its samples."""
    case, traces, job = draw("slow_host", 11, (JobShape(dp=4, layers=3),))
    operations = operations_of(job, traces)
    if not thread:
        return operations
    given = []
    for one in operations:
        rows = [
            (position, chain, 10, 10 * US * (4000 if chain == (one.rank in case.culprits) else 1))
            for position in range(len(one.iterations))
            for chain in (0, 1)
        ]
        given.append(replace(one, thread=ThreadTimes([MAIN, READ], [[0], [0, 1]], rows)))
    return given


def test_operations_carry_them_and_those_of_before_have_none() -> None:
    for one in late_job():
        assert decode(encode(one)).thread == one.thread
    bare = late_job(thread=False)[0]
    assert decode(encode(bare)).thread == ThreadTimes()


def test_lines_of_code_never_drive_the_operations_out_of_a_summary() -> None:
    one = late_job()[0]
    whole, bare = len(encode(one)), len(encode(replace(one, thread=ThreadTimes())))
    for most, length in ((whole, whole), (whole - 1, bare), (bare, bare), (bare - 1, whole)):
        assert len(encode_within(one, most)) == length


def test_a_straggler_has_the_line_of_code_and_says_it() -> None:
    found = stragglers_of(late_job())
    assert found is not None
    (one,) = found.ranks
    assert one.cause == "host"
    assert one.place is not None
    assert (one.place.file, one.place.function, one.place.line) == READ
    assert any("host code (t.py:41 read_batch)" in line for line in list_stragglers(found, 120))
    bare = stragglers_of(late_job(thread=False))
    assert bare is not None
    assert bare.ranks[0].place is None


@pytest.mark.attack
@pytest.mark.parametrize(
    ("file", "function", "shown"),
    [
        ("/a/train.py", "read_batch", "train.py:41 read_batch"),
        ("/a/train.py", "<module>", "train.py:41"),
        ("/a/mine/__init__.py", "f", "mine/__init__.py:41 f"),
        ("C:\\a\\train.py", "f", "train.py:41 f"),
        ("/a/\x1b[31m<script>x.py", "f\nforged", "�[31m<script>x.py:41 f�forged"),
        ("x" * 200, "f", "x" * 99 + "…"),
    ],
)
def test_a_line_is_one_line_whatever_the_job_calls_its_code(file: str, function: str, shown: str) -> None:
    place = PlaceInCode(file=file, line=41, function=function, samples=3, of_samples=4)
    stages = Stages(
        stages=[StageTime(stage="host", time_ns=3)],
        silences=[Silence(after="aten::item", before="aten::randn", time_ns=3, count=1, place=place)],
    )
    late = Straggler(rank=1, lateness_ns=5, cause="host", gain=0.1, place=place)
    report = Report(
        ranks=[Rank(rank=0, source="t", kind="cpu", time_basis="host", time_ns=TimeBreakdown(), stages=stages)],
        stragglers=Stragglers(verdict="straggler", reason="the others wait", ranks=[late]),
    )
    text, page = re.sub(r"\s+", " ", render_text(report, width=400)), render_page(report)
    assert f"between aten::item and aten::randn ({shown})" in text
    assert f"host code ({shown})" in text
    assert f"({shown})" in html.unescape(page.partition("<script")[0])
    assert "<script>x" not in page
    assert [line for line in render_text(report, width=80).splitlines() if line.startswith("forged")] == []
