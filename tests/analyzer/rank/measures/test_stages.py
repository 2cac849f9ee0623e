"""Stages of the training loop: planted loops, pieces that cover every nanosecond, real traces without their marks."""

import gzip
import io
import itertools
import json
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.rank.measures.kernels.launch_calls import find_calls
from fleetprof_analyzer.rank.measures.stages.gaps import fill
from fleetprof_analyzer.rank.measures.stages.labels import find_labels
from fleetprof_analyzer.rank.measures.stages.main_thread import find_main_thread
from fleetprof_analyzer.rank.measures.stages.stages import bound_by_passes, find_passes, find_stages, sum_up
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.stage_names import function_of, is_loss_like
from harness.traces.kept_traces import find, traces_in, truth_of
from harness.traces.planted.loop import AUTOGRAD, MAIN, US, iteration, kernel, launch, measure, read, row, times
from hypothesis import given, settings
from hypothesis import strategies as st

WHOLE = {
    "data_loading": 100,
    "zero_grad": 50,
    "forward": 300,
    "loss": 50,
    "backward": 300,
    "optimizer": 180,
    "other": 20,
}


def test_a_marked_loop() -> None:
    stages = measure(read([event for number in (1, 2) for event in iteration(1000 * number, number)]))
    assert times(stages) == {stage: 2 * time for stage, time in WHOLE.items()}
    assert (stages.iterations, stages.iterations_from, stages.inferred) == (2, "profiler_step", ["data_loading"])
    device = {stage.stage: (stage.device_count, stage.device_ns // US) for stage in stages.stages if stage.device_count}
    assert device == {"data_loading": (2, 16), "forward": (2, 440), "backward": (2, 320), "optimizer": (2, 60)}
    assert stages.unknown_device_ns == 0


def test_autograd_on_the_main_thread() -> None:
    stages = measure(read([e for n in (1, 2) for e in iteration(1000 * n, n, threads=False)]))
    assert times(stages) == {stage: 2 * time for stage, time in WHOLE.items()}


def test_a_loop_without_any_mark() -> None:
    events = [event for number in (1, 2, 3) for event in iteration(1000 * number, number, marks=False, loader=False)]
    stages = measure(read(events))
    assert (stages.iterations, stages.iterations_from) == (3, "backward")
    found = times(stages)
    # From the first operator to the end of the last update: 2890 µs. From update to next batch: data loading.
    assert sum(found.values()) == 2890
    assert found["forward"] == pytest.approx(900, abs=160)
    assert found["backward"] == pytest.approx(900, abs=100)
    assert found["optimizer"] == pytest.approx(360, abs=100)
    assert found["loss"] == 150
    assert set(stages.inferred) == {"data_loading", "optimizer"}


@pytest.mark.parametrize("on_gpu", [False, True])
def test_gradients_set_to_zero_behind_the_forward_pass(on_gpu: bool) -> None:
    moved = {"Optimizer.zero_grad#SGD.zero_grad": 350, "aten::linear": -50, "aten::addmm": -50, "aten::relu": -50,
             "aten::mse_loss": -50}  # fmt: skip
    events = [
        event | {"ts": event["ts"] + moved.get(event["name"], 0)} for n in (1, 2) for event in iteration(1000 * n, n)
    ]
    events = [e for e in events if on_gpu or e["cat"] in ("cpu_op", "user_annotation")]
    events += [row("aten::zero_", 1000 * n + 460, 1000 * n + 490) for n in (1, 2)]
    # Without a device nothing is copied to it, so what follows the loader is no data loading any more.
    assert times(measure(read(events))) == {
        "data_loading": 200 if on_gpu else 110, "zero_grad": 100, "forward": 600 if on_gpu else 690, "loss": 100,
        "backward": 600, "optimizer": 360, "other": 40,
    }  # fmt: skip


def test_the_next_batch_fetched_ahead_is_other_and_what_follows_it_is_backward() -> None:
    ahead = [event for n in (1, 2) for event in iteration(1000 * n, n) if event["name"] != "aten::mse_loss"]
    for n in (1, 2):
        ahead += [
            row("DistributedDataParallel.forward", 1000 * n + 150, 1000 * n + 445, category="user_annotation"),
            row("aten::empty", 1000 * n + 450, 1000 * n + 455),
            row("c10d::alltoall_", 1000 * n + 460, 1000 * n + 480),
            row("nccl:all_to_all", 1000 * n + 465, 1000 * n + 475, category="user_annotation"),
            row("aten::sum", 1000 * n + 490, 1000 * n + 500, sequence=10 * n + 3),
        ]
    found = times(measure(read(ahead)))
    # Of each iteration: other 450 to 480 and 980 to 1000, backward from 480.
    assert (found["forward"], found["other"], found["backward"]) == (600, 100, 640)


@pytest.mark.parametrize(("copied", "stage"), [("aten::to", "data_loading"), ("aten::item", "forward")])
def test_time_blocked_in_copies_before_the_forward_pass_is_data_loading(copied: str, stage: str) -> None:
    """Sparse features are passed around before each forward pass, and their lengths are waited for (torchrec).

    The network is all sums and views, which look like a loss; what is before it carries its first node's number.
    """
    events = []
    for n in (1, 2):
        at, functions = 1000 * n, {"ReluBackward0": "SumBackward0", "AddmmBackward0": "ViewBackward0"}
        for event in iteration(at, n):
            for old, new in functions.items():
                event["name"] = event["name"].replace(old, new)
            if event["name"] in ("aten::linear", "aten::addmm"):
                event |= {"ts": event["ts"] + 120, "dur": event["dur"] - 120}
            events.append(event)
        events += [
            row("c10d::alltoall_base_", at + 155, at + 165),
            row(copied, at + 165, at + 260, sequence=10 * n + 1),
            launch(at + 170, 10 * n + 7, name="cudaMemcpyAsync"),
            row("cudaStreamSynchronize", at + 175, at + 255, category="cuda_runtime", correlation=10 * n + 8),
            kernel(at + 240, at + 250, 10 * n + 7, "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy"),
        ]
    found = times(measure(read(events)))
    assert found["data_loading"] == (200 if stage == "forward" else 420)
    assert found["forward"] + found["loss"] == (700 if stage == "forward" else 480)


def test_a_loss_is_found_by_autograds_functions_where_the_engines_rows_are_missing() -> None:
    engine = "autograd::engine::evaluate_function: "
    events = [event for n in (1, 2) for event in iteration(1000 * n, n)]
    renamed = {"aten::mse_loss": "aten::sum", f"{engine}MseLossBackward0": "SumBackward0"}
    for event in events:
        event["name"] = renamed.get(event["name"], event["name"].removeprefix(engine))
    assert times(measure(read(events)))["loss"] == 2 * WHOLE["loss"]


def test_gradients_over_two_passes() -> None:
    first, second = iteration(1000, 1, marks=False), iteration(1600, 2, marks=False)
    update = [event for event in first if "foreach" not in event["name"] and event["ts"] < 1800]
    forward = [event for event in second if 1750 <= event["ts"] < 2600 and "foreach" not in event["name"]]
    marks = [row("ProfilerStep#1", 1000, 2600, category="user_annotation"),
             row("Optimizer.step#SGD.step", 2450, 2590, category="user_annotation")]  # fmt: skip
    found = times(measure(read([*update, *forward, *marks])))
    assert found["backward"] > 500
    assert found["forward"] >= 600


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([row("aten::mm", 0, 10), kernel(5, 9, 1)], "inference"),
        ([kernel(5, 9, 1)], "was not recorded"),
        ([row("aten::mm", 0, 10, sequence=3)], "no backward pass"),
    ],
)
def test_no_stages_have_a_reason(events: list[dict[str, Any]], reason: str) -> None:
    stages = measure(read(events))
    assert stages.stages == []
    assert reason in stages.reason


@pytest.mark.parametrize(
    ("function", "loss"),
    [("NllLossBackward0", True), ("LogSoftmaxBackward0", True), ("MeanBackward0", True), ("MulBackward0", True),
     ("AddmmBackward0", False), ("ConvolutionBackward0", False), ("NativeBatchNormBackward0", False),
     ("CudnnConvolutionBackward0", False), ("EmbeddingBackward0", False)],
)  # fmt: skip
def test_functions_of_a_loss_are_told_from_those_of_layers(function: str, loss: bool) -> None:
    assert is_loss_like(function) == loss
    assert function_of(f"autograd::engine::evaluate_function: {function}") == function


NAMES = ["aten::mm", "aten::add_", "aten::mse_loss", "aten::ones_like", "ProfilerStep#1", "ProfilerStep#2",
         "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad", "DistributedDataParallel.forward",
         "enumerate(DataLoader)#x", "autograd::engine::evaluate_function: MulBackward0", "MmBackward0",
         "nccl:all_reduce"]  # fmt: skip


@settings(max_examples=500)
@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 60), st.integers(0, 30), st.sampled_from([MAIN, AUTOGRAD]),
                  st.sampled_from(["cpu_op", "user_annotation"]), st.integers(-1, 3)),
        max_size=14,
    ),
    st.sampled_from([1, 100]),  # with and without silences
)  # fmt: skip
def test_whatever_is_in_a_trace_the_stages_add_up_to_its_iterations(rows: list[Any], unit: int) -> None:
    events = [
        row(name, start * unit, (start + length) * unit, thread=thread, category=category,
            **({"Sequence number": number} if number >= 0 else {}))
        for name, start, length, thread, category, number in rows
    ]  # fmt: skip
    trace = read(events)
    if len(trace.rows) == 0:
        return
    found = find_iterations(trace, None, RecordingTerms(), Problems())
    calls = find_calls(trace)
    stages = sum_up(trace, calls, find_stages(trace, calls, found.iterations, found.marks), None)
    if stages.iterations_from in ("profiler_step", "optimizer_step") and stages.stages:
        assert sum(stage.time_ns for stage in stages.stages) == sum(i.duration_ns for i in found.iterations)
    assert bool(stages.reason) == (stages.iterations == 0)


@pytest.mark.parametrize("folder", ["gpu_loop", "gpu_one_step"])
def test_stages_that_were_counted_by_hand(folder: str) -> None:
    (file,) = traces_in(folder)
    trace = read_trace(io.BytesIO(file.read_bytes()), "t", Problems())
    truth = truth_of(folder)
    assert times(measure(trace)) == truth["stages_us"]
    iterations = find_iterations(trace, None, RecordingTerms(), Problems()).iterations
    assert [[i.index, i.start_ns // US, i.duration_ns // US] for i in iterations] == truth["iterations"]


# ---------------------------------------------------------------- real traces, their marks removed

# Of torchrec's pipelines the batches are numbered; what sends the next batch's inputs around is no part of this one's.
TRUTH = [
    (re.compile(rf"^## (?:{names})(?: \d+)? ##$"), stages)
    for names, stages in (
        ("forward", {"forward", "loss"}),  # these marks do not tell one from the other
        ("backward", {"backward"}),
        ("optimizer", {"optimizer"}),
        ("zero_grad", {"zero_grad"}),
        ("copy_batch_to_gpu|wait_for_batch|data_load", {"data_loading"}),
        (r"(?:start_|wait_)?sparse_data_dist|sdd_\w+|recmetrics_update", {"other", "data_loading"}),
    )
]
STEPS, OPTIMIZER, ENGINE = r"^ProfilerStep", r"^Optimizer\.", r"^Distributed|DataLoader|evaluate_function"
OURS = ("two_ranks_longer/rank0.json.gz", "two_ranks_longer/rank1.json.gz", "four_ranks/rank2.json.gz")
NCCL = "nccl_a100/nccl_data.json.gz"
DLRM = [
    f"dlrm_v100_8ranks/worker{rank}_step_12.{time}.pt.trace.json.gz"
    for rank, time in ((0, 1694128201545), (2, 1694128201554), (7, 1694128201553))
]
PIPELINE = ("torchrec_pipeline/rank0.json.gz", "torchrec_pipeline/rank1.json.gz")


@pytest.mark.parametrize(
    ("file", "removed", "least"),
    [
        *((rank, removed, least) for rank in OURS
          for removed, least in (([], 99.5), ([OPTIMIZER], 96.0), ([OPTIMIZER, ENGINE], 92.5))),
        (NCCL, [], 99.5), (NCCL, [STEPS], 99.5), (NCCL, [STEPS, OPTIMIZER], 98.5),
        (NCCL, [STEPS, OPTIMIZER, ENGINE], 98.5),
        *((rank, removed, least) for ranks, least in ((DLRM, 96.5), (PIPELINE, 97.5)) for rank in ranks
          for removed in ([], [STEPS], [STEPS, OPTIMIZER], [STEPS, OPTIMIZER, ENGINE])),
        # Of a hundred rows one or two were recorded.
        *((f"sampled_2of128/sampled_rank-{rank}.json.gz", removed, least) for rank in (0, 1)
          for removed, least in (([], 98.5), ([STEPS], 98.5), ([STEPS, OPTIMIZER, ENGINE], 96.0))),
    ],
)  # fmt: skip
def test_real_loops_with_their_annotations_removed(file: str, removed: list[str], least: float) -> None:
    document = json.loads(gzip.decompress(find(file).read_bytes()), parse_float=Decimal)
    events = document["traceEvents"]
    marks = [e for e in events if e.get("cat") == "user_annotation"]
    truth = [(e, stages) for e in marks for pattern, stages in TRUTH if pattern.search(e["name"])]
    annotation = re.compile("|".join([r"^## .* ##$", *removed]))
    document["traceEvents"] = [e for e in events if not annotation.search(str(e.get("name", "")))]
    trace = read_trace(io.BytesIO(json.dumps(document, default=str).encode()), "t", Problems())
    found = find_iterations(trace, None, RecordingTerms(), Problems())
    thread = find_main_thread(trace, find_calls(trace))
    assert thread is not None
    passes = find_passes(thread)
    bounds = [(i.start_ns, i.start_ns + i.duration_ns) for i in found.iterations] or bound_by_passes(thread, passes)
    labels = []
    for start, end in bounds:
        pieces = fill(thread, find_labels(trace, thread, passes, start, end), start, end)
        assert pieces[0][0] == start
        assert pieces[-1][1] == end
        assert all(left[1] == right[0] for left, right in itertools.pairwise(pieces))
        labels += pieces
    base = int(document.get("baseTimeNanoseconds", 0)) if float(truth[0][0]["ts"]) < 1e15 else 0
    right, whole = Counter[str](), 0
    for event, stages in _outermost(truth):
        start = int(Decimal(event["ts"]) * 1000) + base
        end = start + int(Decimal(event["dur"]) * 1000)
        for left, until, label in labels:
            shared = max(0, min(until, end) - max(left, start))
            whole += shared
            right[label] += shared if label in stages else 0
    assert 100 * right.total() / whole >= least, right


def _outermost(marks: list[tuple[dict[str, Any], set[str]]]) -> list[tuple[dict[str, Any], set[str]]]:
    """Marks that no other one encloses: torchrec's model waits for its inputs in its forward pass."""
    found: list[tuple[dict[str, Any], set[str]]] = []
    for event, stages in sorted(marks, key=lambda mark: (float(mark[0]["ts"]), -float(mark[0]["dur"]))):
        if not found or float(event["ts"]) >= float(found[-1][0]["ts"]) + float(found[-1][0]["dur"]):
            found.append((event, stages))
    return found
