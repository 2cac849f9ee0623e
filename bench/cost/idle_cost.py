"""The cost of fleetprof for a job while nothing is captured: by the clock against a bare job (turns.py), and counted.

The clock cannot see a thousandth on a machine that others use. What can be counted is counted: the CPU time of the
hook per step, of Kineto's polling thread and of the sidecar, per second, each from the kernel's own account. By the
clock one process is switched between bare and treated: what that leaves out is Kineto's thread, which sleeps but for
its polls, and how the heap of a process lies that has it. When a block begins all is due that sidecar and agent do once
in a second or two, so that a block of half a second has twice as much of it as a training has. The comparison of
processes has no such flaw, and is less exact. An iteration has as many batches as make its length here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from cost.turns import BARE, Trainer, Way, compare, start_trainer
from figures import Figure
from harness.training.local_job import processes_of
from harness.training.local_system import Local
from harness.waiting import wait_until

WORKER = Path(__file__).with_name("iterations.py")
SIMULATION = Path(__file__).parents[2] / "tests" / "simulation" / "trainer.py"
FLEETPROF = (sys.executable, "-m", "fleetprof_cli.main")
WIDTH = 256
# How long an iteration is: as in a fast training, and in the worst case.
ITERATION_MS = 20
WORST_ITERATION_MS = 2
BLOCK_MS = 500
LEAD_IN_MS = {ITERATION_MS: 0, WORST_ITERATION_MS: 120}
CALIBRATION = 300  # batches
SIDECAR_PROCESSES = 8
STEPS_PER_S = 100
CORE = max(os.sched_getaffinity(0))
OTHER_CORES = os.sched_getaffinity(0) - {CORE}
# The ways beside BARE, and how `fleetprof run` starts those that it starts.
TREATED = "treated"
TOGETHER = "together"  # the sidecar on the trainer's own core
POLLING = "polling"
CONTROL = "control"
OF_RUN: dict[str, tuple[str, ...]] = {TREATED: (), POLLING: ("--no-agent",)}


def _cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process, by the scheduler's account."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def _rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def _start(local: Local, kind: str, batches: int, stack: ExitStack) -> Trainer:
    """A trainer: bare, or under `fleetprof run` with all or without the agent."""
    wrapper: tuple[str, ...] = ()
    if kind in OF_RUN:
        wrapper = (*FLEETPROF, "run", "--name", f"idle-{time.monotonic_ns()}", *OF_RUN[kind], "--")
    command = [*wrapper, sys.executable, str(WORKER), str(WIDTH), str(batches)]
    environment = local.environment | {"KINETO_LOG_LEVEL": "99"}
    return stack.enter_context(start_trainer(command, environment, CORE, CALIBRATION // batches))


def measure_batch_ns(local: Local) -> int:
    """The time of one batch here."""
    with ExitStack() as stack:
        trainer = _start(local, BARE, 1, stack)
        return min(trainer.run_block(CALIBRATION)[0] // CALIBRATION for _ in range(5))


def start_processes(local: Local, batches: int, stack: ExitStack) -> dict[str, Way]:
    """Four trainers of their own: bare twice, with all, and without the agent."""
    started = {kind: _start(local, kind, batches, stack) for kind in (BARE, TREATED, POLLING, CONTROL)}
    for trainer in started.values():
        os.kill(trainer.pid, signal.SIGSTOP)
    return {kind: trainer.run_alone for kind, trainer in started.items()}


def start_switched(local: Local, batches: int, stack: ExitStack) -> dict[str, Way]:
    """One trainer with all; it is bare while its hooks are taken out and its sidecar is stopped."""
    trainer = _start(local, TREATED, batches, stack)
    sidecar = wait_until(
        lambda: next((p for p, _, c in processes_of(trainer.process.pid) if "fleetprof_sidecar.main" in c), 0),
        "the sidecar",
    )
    stack.callback(os.kill, sidecar, signal.SIGCONT)

    def run(iterations: int, cores: set[int] | None = None) -> tuple[int, int]:
        if cores:
            for task in Path(f"/proc/{sidecar}/task").iterdir():
                os.sched_setaffinity(int(task.name), cores)
        os.kill(sidecar, signal.SIGCONT if cores else signal.SIGSTOP)
        return trainer.run_block(iterations, hooked=cores is not None)

    return {
        BARE: run,
        TREATED: partial(run, cores=OTHER_CORES or {CORE}),
        TOGETHER: partial(run, cores={CORE}),
        CONTROL: run,
    }


def measure_training(local: Local, *, quick: bool) -> list[Figure]:
    """Iteration time with sidecar and agent idle against the bare job, whose trainer has a core to itself."""
    batch_ns = measure_batch_ns(local)
    switched, processes = (
        compare(
            partial(start, local, max(1, round(1e6 * length_ms / batch_ns))),
            repeats=2 if quick else repeats,
            rounds=3 if quick else rounds,
            block=BLOCK_MS // length_ms,
            lead_in=LEAD_IN_MS[length_ms] // length_ms,
        )
        for start, length_ms, repeats, rounds in (
            (start_switched, ITERATION_MS, 12, 20),
            (start_processes, WORST_ITERATION_MS, 6, 12),
        )
    )
    high = switched[TREATED].wall[2]
    return [
        Figure(
            "idle cost",
            f"iteration time with sidecar and agent idle, against the bare job ({ITERATION_MS} ms)",
            _percent(switched[TREATED].wall),
            "<= 0.5 %",
            high <= 0.5,
        ),
        Figure("idle cost", "  the sidecar on the trainer's own core", _percent(switched[TOGETHER].wall)),
        Figure("idle cost", "  the same method, bare against bare", _percent(switched[CONTROL].wall)),
        Figure("idle cost", "  CPU time of the trainer alone", _percent(switched[TREATED].cpu)),
        Figure(
            "idle cost",
            f"the worst case, iterations of {WORST_ITERATION_MS} ms, all on one core, in processes of their own",
            _percent(processes[TREATED].wall),
        ),
        Figure("idle cost", "  without the agent: PyTorch's own daemon mode", _percent(processes[POLLING].wall)),
        Figure("idle cost", "  the same method, bare against bare", _percent(processes[CONTROL].wall)),
    ]


def _percent(values: tuple[float, float, float]) -> str:
    return "{:+.2f} % [{:+.2f}, {:+.2f}]".format(*values)


def measure_polling(local: Local, seconds: float) -> float:
    """CPU time (percent of a core) of what is added to a trainer beside its hook: Kineto's thread that polls."""
    with ExitStack() as stack:
        trainer = _start(local, TREATED, 1, stack)
        time.sleep(3)
        before = _cpu_ns(trainer.pid)  # the trainer itself waits for its next block
        time.sleep(seconds)
        return 100 * (_cpu_ns(trainer.pid) - before) / (seconds * 1e9)


def measure_sidecar(local: Local, processes: int, seconds: float, device: str = "cpu") -> tuple[float, float]:
    """RSS (MiB) and CPU time (percent of a core) of a sidecar that serves simulated processes and captures nothing."""
    simulate = (
        f'exec {sys.executable} {SIMULATION} --directory "$KINETO_IPC_SOCKET_DIR" --ranks {processes} --device {device}'
    )
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


def measure_agent() -> dict[str, Any]:
    """The output of agent_hook.py; in a process of its own."""
    script = Path(__file__).with_name("agent_hook.py")
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(result.stdout)
    return measured


def _tell_in_place(found: dict[str, int]) -> str:
    share = 100 * found["agent_mean"] / found["iteration_ns"]
    return (
        f"{found['agent'] / 1000:.1f} µs, with reports {share:.2f} % of {found['iteration_ns'] / 1e6:.0f} ms; "
        f"an empty function {found['empty'] / 1000:.1f}, Kineto's hook {found['kineto'] / 1000:.1f} µs"
    )


def measure(local: Local, *, quick: bool) -> list[Figure]:
    """The cost of a job while nothing is captured. `quick` measurements are too short for a claim."""
    seconds = 5 if quick else 30
    agent = measure_agent()
    hook_us, announce_us = agent["hook_ns"] / 1000, agent["announce_ns"] / 1000
    polling = measure_polling(local, seconds)
    rss, sidecar = measure_sidecar(local, SIDECAR_PROCESSES, seconds)
    counted = hook_us * STEPS_PER_S / 1e4 + polling + sidecar / SIDECAR_PROCESSES
    served = f"sidecar with {SIDECAR_PROCESSES} processes"
    return [
        Figure("idle cost", "agent's hook per optimizer step", f"{hook_us:.2f} µs", "<= 2 µs", hook_us <= 2),
        Figure("idle cost", "  in place, where caches are cold", _tell_in_place(agent["in_place"])),
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
