"""What fleetprof costs a job while nothing is captured: by the clock against a bare job (turns.py), and counted.

The clock cannot see a thousandth on a machine that others use. What can be counted is counted: the CPU time of the
hook per step, of Kineto's polling thread and of the sidecar, per second, each from the kernel's own account.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from figures import Figure
from local_system import Local, wait_until
from turns import Runner, compare, start_runner

WORKER = Path(__file__).with_name("iterations.py")
SIMULATION = Path(__file__).parent.parent / "tests" / "simulation" / "trainer.py"
FLEETPROF = (sys.executable, "-m", "fleetprof_cli.main")
WIDTH = 256
BLOCK = 250  # iterations, about half a second
LEAD_IN = 60
PROCESSES = 8
ROUNDS = 25
SIDECAR_PROCESSES = 8
STEPS_PER_S = 100


def _cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process, by the scheduler's account."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def _rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def _start(local: Local, core: int, kind: str, stack: ExitStack) -> Runner:
    wrapper = (*FLEETPROF, "run", "--name", f"idle-{time.monotonic_ns()}", "--") if kind == "treated" else ()
    command = [*wrapper, sys.executable, str(WORKER), str(WIDTH)]
    environment = local.environment | {"KINETO_LOG_LEVEL": "99"}
    return stack.enter_context(start_runner(command, environment, core, BLOCK))


def measure_training(local: Local, *, quick: bool) -> list[Figure]:
    """Iteration time with sidecar and agent idle, all on the job's one core, against the bare job."""
    core = max(os.sched_getaffinity(0))
    processes, rounds = (2, 3) if quick else (PROCESSES, ROUNDS)
    treated, control = compare(lambda kind, stack: _start(local, core, kind, stack), processes, rounds, BLOCK, LEAD_IN)
    return [
        Figure(
            "idle cost",
            "iteration time with sidecar and agent idle, against the bare job",
            _percent(treated.wall),
            "<= 0.5 %",
            treated.wall[2] <= 0.5,
        ),
        Figure("idle cost", "  the same method, bare against bare", _percent(control.wall)),
        Figure("idle cost", "  CPU time of the trainer per iteration, against the bare job", _percent(treated.cpu)),
        Figure("idle cost", "  the same method, bare against bare", _percent(control.cpu)),
    ]


def _percent(values: tuple[float, float, float]) -> str:
    return "{:+.2f} % [{:+.2f}, {:+.2f}]".format(*values)


def measure_polling(local: Local, seconds: float) -> float:
    """CPU time (percent of a core) of what is added to a trainer beside its hook: Kineto's thread that polls."""
    with ExitStack() as stack:
        runner = _start(local, max(os.sched_getaffinity(0)), "treated", stack)
        os.kill(runner.pid, signal.SIGCONT)
        time.sleep(3)
        before = _cpu_ns(runner.pid)  # the trainer itself waits for its next block
        time.sleep(seconds)
        return 100 * (_cpu_ns(runner.pid) - before) / (seconds * 1e9)


def measure_sidecar(local: Local, processes: int, seconds: float) -> tuple[float, float]:
    """RSS (MiB) and CPU time (percent of a core) of a sidecar that serves simulated processes and captures nothing."""
    simulate = f'exec {sys.executable} {SIMULATION} --directory "$KINETO_IPC_SOCKET_DIR" --ranks {processes}'
    job = local.run_command("resting", "sh", "-c", simulate)
    try:
        pid = job.sidecar_pid()
        wait_until(lambda: len([p for s in local.fleet().sidecars for p in s.processes]) >= processes, "8 processes")
        time.sleep(10)
        cpu, begin = _cpu_ns(pid), time.monotonic()
        time.sleep(seconds)
        share = 100 * (_cpu_ns(pid) - cpu) / (1e9 * (time.monotonic() - begin))
        rss = _rss_mib(pid)
    finally:
        job.process.terminate()
        job.process.wait(60)
    return rss, share


def measure_agent() -> tuple[float, float]:
    """The agent's hook per optimizer step, and its word at PyTorch's import (µs); in a process of its own."""
    script = Path(__file__).with_name("agent_hook.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    return measured["hook_ns"] / 1000, measured["announce_ns"] / 1000


def measure(local: Local, *, quick: bool) -> list[Figure]:
    """All of this module."""
    seconds = 5 if quick else 30
    hook_us, announce_us = measure_agent()
    polling = measure_polling(local, seconds)
    rss, sidecar = measure_sidecar(local, SIDECAR_PROCESSES, seconds)
    counted = hook_us * STEPS_PER_S / 1e4 + polling + sidecar / SIDECAR_PROCESSES
    served = f"sidecar with {SIDECAR_PROCESSES} processes"
    return [
        Figure("idle cost", "agent's hook per optimizer step", f"{hook_us:.2f} µs", "<= 2 µs", hook_us <= 2),
        Figure(
            "idle cost", "agent's word at PyTorch's import", f"{announce_us:.0f} µs", "<= 500 µs", announce_us <= 500
        ),
        Figure("idle cost", "Kineto's polls, counted", f"{polling:.3f} % of a core"),
        Figure("idle cost", f"{served}: memory", f"{rss:.1f} MiB RSS", "<= 64 MiB", rss <= 64),
        Figure("idle cost", f"{served}: CPU", f"{sidecar:.2f} % of a core", "<= 0.5 %", sidecar <= 0.5),
        Figure(
            "idle cost",
            f"counted in all, per process at {STEPS_PER_S} steps/s",
            f"{counted:.3f} % of a core",
            "<= 0.5 %",
            counted <= 0.5,
        ),
        *measure_training(local, quick=quick),
    ]
