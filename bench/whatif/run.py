"""`make bench-whatif`: predictions beside the truth, a row for each line of what is asked.

    python bench/whatif/run.py [--seeds N] [--first S] [--layouts A,B] [--traces DIR] [--each]

Unchanged replays are those of real traces (../shared/traces) and of simulated jobs. Edits are those of simulated jobs;
the truth is the same job simulated anew with what was edited: by the same random numbers for the error, and by others,
as the next capture on the same machines has them, for whether the interval holds it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
from fleetprof_analyzer.capture.replayed.reading import read_folder  # noqa: E402
from fleetprof_analyzer.whatif.edits import read_edits  # noqa: E402
from fleetprof_analyzer.whatif.prediction import measure_quality, predict  # noqa: E402
from fleetprof_analyzer.whatif.replay.job import CapturedJob, read_job  # noqa: E402
from fleetprof_api.report.prediction import Prediction  # noqa: E402
from harness.traces.simulated.cases import HEALTHY, LAYOUTS, draw_simulated, faults_of  # noqa: E402
from harness.traces.simulated.jobs import EventJob  # noqa: E402
from harness.traces.simulated.shapes import DynamicShapes, LoopShape, SimulatedFault  # noqa: E402

# (a folder, its files as one job each) of the published traces.
REAL = (
    ("dlrm_v100_8ranks", False), ("dlrm_v100_8ranks", True), ("df_index_v100", True), ("gpu_only_mi210", True),
    ("inference_h100_mi300", True), ("mi250_amd", True), ("nccl_a100", True), ("resnet50_v100_old", True),
    ("sampled_2of128", False), ("sampled_2of128", True),
)  # fmt: skip
MOST_RANKS = 48
TOKENS = 4096  # of the simulation's usual batch
NOT_MENDED = (*HEALTHY, "slow_link", "slow_group", "heavy_stage", "slow_copy", "more_kernels")


@dataclass(frozen=True)
class JudgedPrediction:
    """One outcome of a line: the error, whether the interval held the truth, and what it was."""

    line: str
    error: float
    inside: bool | None
    words: str


def replay_real(traces: Path) -> Iterator[JudgedPrediction]:
    """The unchanged replay of each published trace."""
    for folder, apart in REAL:
        for path in sorted((traces / folder).iterdir()) if apart else [traces / folder]:
            quality = measure_quality(read_folder(path))
            words = (
                f"{path.relative_to(traces)}: {quality.recorded_ns / 1e6:.3f} ms, unexplained {quality.unexplained:.1%}"
            )
            yield JudgedPrediction("replay: real GPU traces", quality.error, None, words)
            yield JudgedPrediction("replay: their worst iterations", quality.worst_error, None, words)


def edit_simulated(layout: str, seed: int) -> Iterator[JudgedPrediction]:
    """Edits of one healthy job, and each straggler of the layout removed."""
    healthy = draw_simulated(layout, "none", seed).job
    job = _read(healthy)
    quality = measure_quality(job)
    yield JudgedPrediction("replay: simulated jobs", quality.error, None, f"{layout} {seed}")
    for line, text, shape in _changed(healthy.shape):
        truths = [_iteration_ns(shape, seed, run) for run in (0, 1)]
        yield from _judge(line, f"{layout} {seed}", _ask(job, text), truths)
    for kind in faults_of(layout):
        if kind in NOT_MENDED:
            continue
        case = draw_simulated(layout, kind, seed)
        answer = _ask(_read(case.job), f"without-straggler={case.job.fault.rank}")
        truths = [1000 * case.job.iteration_us * (1 - case.gain), _iteration_ns(case.job.shape, seed, 1)]
        yield from _judge("edit: without straggler", f"{layout} {kind} {seed}", answer, truths)


def resize_simulated(layout: str, seed: int) -> Iterator[JudgedPrediction]:
    """Other numbers of ranks of one healthy job, whose transfers take longer in larger groups."""
    drawn = draw_simulated(layout, "none", seed).job.shape
    source = np.random.default_rng((seed, 200))
    algorithm = ("ring", "tree")[int(source.integers(2))]
    shape = replace(drawn, algorithm=algorithm, hop_us=float(source.uniform(0.5, 3)), per_node=1)
    job = _read(EventJob(shape, SimulatedFault(), seed))
    grows = "shards" if shape.loop == "sharded" and shape.dp == 1 else "dp"
    now = getattr(shape, grows)
    for count in (max(now // 2, 2), 2 * now, 4 * now):
        if count == now or shape.ranks // now * count > MOST_RANKS:
            continue
        changed = replace(shape, **{grows: count}, optimizer=now / count if grows == "shards" else 1.0)
        answer = _ask(job, f"ranks={changed.ranks}")
        truths = [_iteration_ns(changed, seed, run) for run in (0, 1)]
        yield from _judge("edit: ranks", f"{layout} {algorithm} {seed} of {shape.ranks}", answer, truths)


def rebatch_simulated(layout: str, seed: int) -> Iterator[JudgedPrediction]:
    """Half and twice the batch of one healthy job, from one capture with shapes."""
    drawn = draw_simulated(layout, "none", seed).job.shape
    if drawn.dynamic is not None:
        return
    dynamic = DynamicShapes(spread=0, says_inputs=True)
    job = replace(_read(EventJob(replace(drawn, dynamic=dynamic), SimulatedFault(), seed)), samples=float(TOKENS))
    for factor in (0.5, 2.0):
        changed = replace(drawn, dynamic=replace(dynamic, tokens=factor))
        answer = _ask(job, f"batch_size={factor * TOKENS:.0f}")
        truths = [_iteration_ns(changed, seed, run) for run in (0, 1)]
        yield from _judge("edit: batch size, one capture", f"{layout} {seed}", answer, truths)


def _iteration_ns(shape: LoopShape, seed: int, run: int) -> float:
    return 1000 * EventJob(shape, SimulatedFault(), seed, profiled=False, run=run).iteration_us


def _changed(shape: LoopShape) -> Iterator[tuple[str, str, LoopShape]]:
    for factor in (0.5, 2.0):
        yield "edit: network", f"network={factor:g}x", replace(shape, net_us=shape.net_us / factor)
    for factor in (0.7, 2.0):
        faster = replace(shape, faster={"sm90_gemm": factor})
        yield "edit: faster kernel", f"faster:sm90_gemm={factor:g}x", faster
    yield "edit: loader", "loader=0", replace(shape, load=0.0)
    yield "edit: CUDA graphs", "graph=all", replace(shape, graphs=True)


def _read(job: EventJob) -> CapturedJob:
    return read_job(list(enumerate(job.traces())))


def _ask(job: CapturedJob, text: str) -> Prediction:
    return predict(job, [text], read_edits([text]))


def _judge(line: str, case: str, answer: Prediction, truths: list[float]) -> Iterator[JudgedPrediction]:
    if answer.iteration_ns is None:
        yield JudgedPrediction("refused", 0.0, None, f"{case} {answer.edits}: {answer.refused}")
        return
    value = answer.iteration_ns
    words = (
        f"{case} {answer.edits[0]}: {value.value / 1e6:.3f} ms ({value.low / 1e6:.3f} to {value.high / 1e6:.3f}), "
        f"truth {truths[0] / 1e6:.3f}, the next capture {truths[1] / 1e6:.3f}"
    )
    yield JudgedPrediction(line, value.value / truths[0] - 1, value.low <= truths[1] <= value.high, words)


def table(found: list[JudgedPrediction]) -> list[str]:
    """A row for each line."""
    rows = [f"{'line':<34}{'n':>5}{'median':>9}{'mean':>9}{'worst':>9}{'inside':>9}"]
    for line in dict.fromkeys(one.line for one in found):
        of = [one for one in found if one.line == line]
        errors = np.abs([one.error for one in of])
        judged = [one.inside for one in of if one.inside is not None]
        inside = f"{100 * np.mean(judged):.1f} %" if judged else "-"
        shares = "".join(f"{100 * one:>7.2f} %" for one in (np.median(errors), errors.mean(), errors.max()))
        rows.append(f"{line:<34}{len(of):>5}{shares}{inside:>9}")
    every = [one.inside for one in found if one.inside is not None]
    if every:
        rows.append(f"{'intervals: all of these':<34}{len(every):>5}{'':27}{100 * np.mean(every):>7.1f} %")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=2, help="jobs of each layout")
    parser.add_argument("--first", type=int, default=7000, help="the first one's seed")
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces")
    parser.add_argument("--each", action="store_true", help="print every prediction")
    given = parser.parse_args()
    found = list(replay_real(given.traces)) if given.traces.is_dir() else []
    for layout in given.layouts.split(","):
        for number in range(given.seeds):
            began = time.monotonic()
            found += edit_simulated(layout, given.first + number)
            found += resize_simulated(layout, given.first + number)
            found += rebatch_simulated(layout, given.first + number)
            print(f"{time.monotonic() - began:5.0f} s  {layout} {given.first + number}", file=sys.stderr, flush=True)
    print("\n".join(table(found)))
    if given.each:
        print(
            "\n".join(
                f"{one.error:+.2%} {'' if one.inside is not False else 'OUTSIDE '}{one.line}: {one.words}"
                for one in found
            )
        )


if __name__ == "__main__":
    main()
