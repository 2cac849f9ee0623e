"""What fleetprof costs a job while nothing is captured.

Two trainers, one bare and one with sidecar and agent, take turns in blocks on the same core, so that the machine's
noise meets both; the ratio of the blocks' medians is taken pair by pair. A second pair, bare against bare, shows what
the method itself sees when there is no difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from figures import Figure, bootstrap_median
from local_system import Local, wait_until

WORKER = Path(__file__).with_name("iterations.py")
SIMULATION = Path(__file__).parent.parent / "tests" / "simulation" / "trainer.py"
FLEETPROF = (sys.executable, "-m", "fleetprof_cli.main")
WIDTH = 256
BLOCK = 40
PAIRS = 150


@contextmanager
def trainer(local: Local, core: int, wrapper: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*wrapper, sys.executable, str(WORKER), str(core), str(WIDTH)],
        env=local.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        run_block(process, BLOCK)
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def run_block(process: subprocess.Popen[str], iterations: int) -> list[int]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{iterations}\n")
    process.stdin.flush()
    durations: list[int] = json.loads(process.stdout.readline())
    return durations


def compare(a: subprocess.Popen[str], b: subprocess.Popen[str], pairs: int) -> tuple[float, float, float]:
    """Median of b/a - 1 over the pairs of blocks, in percent, with its 95 % interval."""
    excess = []
    for pair in range(pairs):
        first, second = (a, b) if pair % 2 == 0 else (b, a)
        blocks = {id(p): median(run_block(p, BLOCK)) for p in (first, second)}
        excess.append(100 * (blocks[id(b)] / blocks[id(a)] - 1))
    return bootstrap_median(excess)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def measure_training(local: Local, pairs: int) -> list[Figure]:
    """Iteration time with sidecar and agent idle against the bare job."""
    core = max(os.sched_getaffinity(0))
    with trainer(local, core) as a:
        with trainer(local, core, (*FLEETPROF, "run", "--name", "idle", "--")) as b:
            middle, low, high = compare(a, b, pairs)
        with trainer(local, core) as control:
            c_middle, c_low, c_high = compare(a, control, pairs)
    return [
        Figure(
            "idle cost",
            "iteration time with sidecar and agent idle, against the bare job",
            f"{middle:+.2f} % [{low:+.2f}, {high:+.2f}]",
            "<= 0.5 %",
            middle <= 0.5,
        ),
        Figure("idle cost", "  the same method, bare against bare", f"{c_middle:+.2f} % [{c_low:+.2f}, {c_high:+.2f}]"),
    ]


def measure_sidecar(local: Local, processes: int = 8, seconds: float = 30) -> list[Figure]:
    """RSS and CPU of a sidecar that serves eight simulated processes and captures nothing."""
    simulate = f'exec {sys.executable} {SIMULATION} --directory "$KINETO_IPC_SOCKET_DIR" --ranks {processes}'
    job = local.run_command("resting", "sh", "-c", simulate)
    try:
        pid = job.sidecar_pid()
        wait_until(lambda: len([p for s in local.fleet().sidecars for p in s.processes]) >= processes, "8 processes")
        time.sleep(10)
        cpu, begin = _cpu_s(pid), time.monotonic()
        time.sleep(seconds)
        share = 100 * (_cpu_s(pid) - cpu) / (time.monotonic() - begin)
        rss = _rss_mib(pid)
    finally:
        job.process.terminate()
        job.process.wait(60)
    return [
        Figure(
            "idle cost", f"sidecar with {processes} processes: memory", f"{rss:.1f} MiB RSS", "<= 64 MiB", rss <= 64
        ),
        Figure(
            "idle cost",
            f"sidecar with {processes} processes: CPU",
            f"{share:.2f} % of a core",
            "<= 0.5 %",
            share <= 0.5,
        ),
    ]


def measure_hook() -> list[Figure]:
    """The agent's hook per optimizer step; in a process of its own, as it changes PyTorch's hooks."""
    script = Path(__file__).with_name("agent_hook.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    hook_us = result["hook_ns"] / 1000
    return [Figure("idle cost", "agent's hook per optimizer step", f"{hook_us:.2f} µs", "<= 2 µs", hook_us <= 2)]


def measure(local: Local, *, quick: bool) -> list[Figure]:
    """All of this module."""
    pairs = 20 if quick else PAIRS
    return [*measure_hook(), *measure_training(local, pairs), *measure_sidecar(local, seconds=5 if quick else 30)]
