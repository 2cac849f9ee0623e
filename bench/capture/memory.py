"""The memory contract on ten shapes of jobs and limits: is a job ever killed, and is a capture refused needlessly?

    python bench/capture/memory.py [--only N]... [--limit-mib MOST]

Needs root and a control group hierarchy that can be written to; each job runs in a group of its own of at most 4 GiB.
Per shape one capture of a workload that nobody knows, as a user asks for it: its canary's one iteration tells the hub
what one takes. "needs": what the window that was asked for would take in all by what was measured of the shape without
a limit (bytes per event of its own peak), so that a window that was cut or refused although it would have fitted shows
as needless. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
JOB = TESTS / "harness" / "memory" / "memory_job.py"
sys.path.insert(0, str(TESTS))

from fleetprof_api.hub import hub_pb2 as pb  # noqa: E402
from fleetprof_api.report.recording import FLOOR_BYTES, MIB  # noqa: E402
from harness.memory.memory_group import MemoryGroup, find_obstacle, memory_group  # noqa: E402
from harness.training.local_system import Local, make_local  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

EVERYTHING = ("Shapes", "Stacks")
# Peak above what the process had, bytes per event, of each shape on PyTorch 2.15 without a limit.
MEASURED = {
    ("layers", ()): 1660,
    ("layers", EVERYTHING): 3040,
    ("layers", ("Shapes",)): 3280,
    ("convolutions", ()): 1490,
    ("convolutions", ("Shapes",)): 4660,
    ("transformer", ()): 1480,
    ("transformer", ("Shapes",)): 3860,
    ("transformer", ("Stacks",)): 1680,
}


@dataclass(frozen=True)
class MemoryCase:
    """One job in one group, and what is asked of it."""

    name: str
    job: str
    limit_mib: int
    iterations: int
    collect: tuple[str, ...] = ()
    ranks: int = 1
    holds_mib: int = 0
    reads: bool = False
    words: tuple[str, ...] = field(default=())  # between the group and the interpreter


SHAPES = [
    MemoryCase("plenty", "layers", 4096, 100),
    MemoryCase("the issue's: everything in 2 GiB", "layers", 2048, 100, EVERYTHING),
    MemoryCase("everything in 4 GiB", "layers", 4096, 100, EVERYTHING),
    MemoryCase("tight", "layers", 700, 100),
    MemoryCase("next to nothing", "layers", 420, 20, EVERYTHING),
    MemoryCase("shapes of convolutions", "convolutions", 2048, 100, ("Shapes",)),
    MemoryCase("transformer", "transformer", 1024, 40, ("Shapes",)),
    MemoryCase("page cache", "layers", 2048, 50, reads=True),
    MemoryCase("a job that holds 1 GiB", "layers", 2048, 60, EVERYTHING, holds_mib=1024),
    MemoryCase("two ranks in one group", "layers", 2048, 60, ("Shapes",), ranks=2),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", type=int, action="append", help="number of a shape, from 1; may be repeated")
    parser.add_argument("--limit-mib", type=int, default=4096, help="leave shapes with a larger limit out")
    arguments = parser.parse_args()
    if obstacle := find_obstacle():
        sys.exit(obstacle)
    print("| # | shape | limit | asked | had | needs | outcome | recorded | group's peak | killed | needless |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for number, shape in enumerate(SHAPES, 1):
        if (not arguments.only or number in arguments.only) and shape.limit_mib <= arguments.limit_mib:
            print(f"| {number} " + _measure(shape), flush=True)


def _measure(shape: MemoryCase) -> str:
    with tempfile.TemporaryDirectory(prefix="fleetprof-memory-") as folder, contextlib.ExitStack() as stack:
        local = make_local(Path(folder))
        stack.callback(local.close)
        local.up()
        group = stack.enter_context(memory_group(f"bench-{time.time_ns() % 10**9}", shape.limit_mib * MIB))
        return _capture(shape, local, group, Path(folder))


def _capture(shape: MemoryCase, local: Local, group: MemoryGroup, folder: Path) -> str:
    stop, words = folder / "stop-now", [sys.executable]
    if shape.ranks > 1:
        words += ["-m", "torch.distributed.run", "--nproc-per-node", str(shape.ranks), "--standalone"]
    words += [str(JOB), shape.job, "--stop-when", str(stop), f"--holds={shape.holds_mib}"]
    if shape.reads:
        cached = folder / "data"
        with cached.open("wb") as file:
            file.truncate(2048 * MIB)
        words.append(f"--reads={cached}")
    job = local.run_command("job", *group.entering(), *shape.words, *words)
    try:
        wait_until(lambda: len(_trainers(local)) == shape.ranks or job.process.poll() is not None, "steps", 180)
        had = min(p.memory_headroom_bytes for p in _trainers(local))
        status = _ask(local, shape)
        stop.touch()
        code = job.process.wait(120)
    finally:
        stop.touch()
        with contextlib.suppress(Exception):
            job.process.wait(120)
    per_event = MEASURED[shape.job, shape.collect]
    events = status.canary.recording_cost.events  # of one iteration
    needs = shape.ranks * shape.iterations * events * per_event
    recorded = [r.recording_cost.iterations for r in status.ranks]
    (succeeded,) = [c.reason for c in status.conditions if c.type == "Succeeded"]
    reasons = ", ".join(sorted({r.reason for r in status.ranks if r.reason}))
    kept = bool(recorded) and min(recorded) >= shape.iterations
    fitted = needs + FLOOR_BYTES <= had
    killed = f"{group.kills()}, exit {code}"
    return (
        f"| {shape.name}{' + '.join(['', *shape.collect])} | {shape.limit_mib} MiB | {shape.iterations} "
        f"| {had // MIB} MiB | {needs // MIB} MiB | {succeeded} {reasons} | {recorded} "
        f"| {group.peak_bytes() // MIB} MiB | {killed} | {'yes' if fitted and not kept else 'no'} |"
    )


def _ask(local: Local, shape: MemoryCase) -> pb.CaptureStatus:
    uid = local.submit(
        "job",
        iterations=shape.iterations,
        canary="Auto",
        collect=list(shape.collect),
        limits={"maxSlowdownPercent": 0},
        deadline_s=240,
    )
    return local.await_end(uid, 300)


def _trainers(local: Local) -> list[pb.Process]:
    processes = [process for sidecar in local.fleet().sidecars for process in sidecar.processes]
    return [p for p in processes if p.step.iteration_ns and p.memory_headroom_bytes]


if __name__ == "__main__":
    main()
