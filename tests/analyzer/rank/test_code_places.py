"""Samples of the training thread and frames of a trace, and the lines of code that they tell."""

from typing import Any

import pytest
from fleetprof_analyzer.rank.host.hot_path import Weight, find_hot_path
from fleetprof_analyzer.rank.host.track import Chain, read_track, within
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.trace.own_code import FOUNDATION, INSTALLED, OWN, is_own_frame, tell_owner
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.samples import ThreadColumns
from harness.traces.planted.loop import US, iteration, measure, read, row
from harness.traces.thread_samples import MAIN, PARSE, READ, looks, samples_of, track_of

SITE = "/opt/venv/lib/python3.11/site-packages"
LIBRARY = "/usr/lib/python3.11"


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
