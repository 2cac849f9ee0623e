"""Captures of a real job of four ranks: does every rank begin at the same iteration, how soon, and what does it cost.

Beside the agent's way (one step for all ranks) stand Kineto's start time and dynolog's way: START_ITERATION 0 with
ROUNDUP 1 (dyno's default), handed to each rank at its next poll.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from figures import Figure
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_api.report.report import Report
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.sockets.directory import trainer_environment
from fleetprof_sidecar.trainer_side import TrainerSide
from harness.training.local_job import TRAINING
from harness.training.local_system import Local, outcome
from harness.waiting import wait_until

RANKS = 4
TRAINS = ("--seconds", "900", "--pause", "0.05")
ITERATIONS = 5


def capture_many(local: Local, name: str, times: int) -> list[tuple[float, Report]]:
    """(seconds from the order to the last rank's start, report) of each capture that all ranks delivered."""
    results = []
    for _ in range(times):
        uid = local.submit(name, iterations=ITERATIONS)
        status = local.await_end(uid)
        if outcome(status)[0] != "True":
            print(f"  a capture failed: {outcome(status)}", file=sys.stderr)
            continue
        report = local.report(uid)
        starts = [rank.start_ns for rank in report.start.ranks]
        results.append(((max(starts) - status.submitted_unix_ns) / 1e9, report))
        time.sleep(0.3)
    return results


def _spread_ms(results: list[tuple[float, Report]]) -> list[float]:
    return [report.start.spread_ns / 1e6 for _, report in results if report.start.spread_ns is not None]


def _spread_line(values: list[float]) -> str:
    return f"median {median(values):.2f} ms, worst {max(values):.2f} ms of {len(values)}"


def _delay_line(values: list[float]) -> str:
    return f"median {median(values):.2f} s, worst {max(values):.2f} s of {len(values)}"


def measure_agent_captures(local: Local, times: int) -> list[Figure]:
    """The agent's way."""
    job = local.run("agent", *TRAINS, ranks=RANKS, torchrun=())
    job.await_steps()
    time.sleep(3)
    results = capture_many(local, "agent", times)
    job.stop()
    aligned = [report.start.same_first_iteration is True for _, report in results]
    spread = _spread_ms(results)
    iteration_s = (
        median(report.capture_cost.before.median_ns or 0 for _, report in results if report.capture_cost) / 1e9
    )
    delays = [delay for delay, _ in results]
    costs = [report.capture_cost for _, report in results if report.capture_cost is not None]
    iteration_s = median(cost.before.median_ns or 0 for cost in costs) / 1e9
    ratios = [100 * (cost.during_ratio - 1) for cost in costs if cost.during_ratio is not None]
    stalls = [cost.stall_ns / 1e6 for cost in costs if cost.stall_ns is not None]
    residues = [100 * cost.residue_ratio for cost in costs if cost.residue_ratio is not None]
    zero = [cost.residue_is_zero for cost in costs if cost.residue_is_zero is not None]
    return [
        Figure(
            "start", "agent: captures in which all ranks began with the same iteration",
            f"{sum(aligned)} of {times}", "100 %", sum(aligned) == times,
        ),
        Figure(
            "start", "agent: start spread over four ranks", _spread_line(spread), "median <= 5 ms", median(spread) <= 5
        ),
        Figure(
            "order to start", "agent, 1 s polls", _delay_line(delays), f"poll + one step ({iteration_s:.2f} s) + margin"
        ),
        Figure("capture cost", "iteration time during the capture, against before", f"median {median(ratios):+.1f} %"),
        Figure("capture cost", "stall at its end", f"median {median(stalls):.1f} ms, worst {max(stalls):.1f} ms"),
        Figure(
            "capture cost", "residue after it",
            f"median {median(residues):+.2f} %; statistically zero in {sum(zero)} of {len(zero)}",
            "statistically zero", sum(zero) >= 0.9 * len(zero),
        ),
    ]  # fmt: skip


def measure_canary(local: Local, times: int) -> list[Figure]:
    """The delay of the ranks' orders when one of them records first; the captures themselves are those above."""
    job = local.run("canary", *TRAINS, ranks=RANKS, torchrun=())
    job.await_steps()
    time.sleep(3)
    took, recorded = [], []
    for _ in range(times):
        status = local.await_end(local.submit("canary", iterations=ITERATIONS, canary="Always"))
        if outcome(status)[0] != "True":
            print(f"  a capture with a canary failed: {outcome(status)}", file=sys.stderr)
            continue
        took.append((status.armed_unix_ns - status.submitted_unix_ns) / 1e9)
        cost = status.canary.time_cost
        recorded.append(100 * (cost.iteration_ns / cost.iteration_before_ns - 1))
        time.sleep(0.3)
    job.stop()
    return [
        Figure("capture cost", "canary: from the request until the ranks are asked", _delay_line(took), "1 to 2 s"),
        Figure("capture cost", "canary: its recorded iteration, against before", f"median {median(recorded):+.1f} %"),
    ]


def measure_time_captures(local: Local, times: int, poll_s: int) -> list[Figure]:
    """Kineto's start time, for jobs without the agent."""
    environment = {}
    if poll_s != 1:
        base = local.folder / f"libkineto-{poll_s}.conf"
        base.write_text(f"ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS={poll_s}\n")
        environment["KINETO_CONFIG"] = str(base)
    name = f"time{poll_s}"
    job = local.run(name, *TRAINS, ranks=RANKS, torchrun=(), run_flags=("--no-agent",), environment=environment)
    job.await_steps(agents=0)
    time.sleep(2.5 * poll_s)
    results = capture_many(local, name, times)
    job.stop()
    delays = [delay for delay, _ in results]
    return [
        Figure("start", f"start time, {poll_s} s polls: start spread", _spread_line(_spread_ms(results))),
        Figure("order to start", f"start time, {poll_s} s polls", _delay_line(delays), "poll interval + lead"),
    ]


def measure_roundup(times: int) -> list[Figure]:
    """dynolog's way, on the same job, spoken by our endpoint: no hub, no agent, Kineto's own 5 s polls."""
    spreads, delays = [], []
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as folder:
        side = TrainerSide(folder)
        side.start()
        environment = trainer_environment(folder, {**os.environ, "FLEETPROF_AGENT": "0", "OMP_NUM_THREADS": "1"})
        environment.pop("KINETO_CONFIG", None)
        stop = Path(folder) / "stop"
        job = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), "--standalone",
             str(TRAINING), *TRAINS, "--stop-when", str(stop)],
            env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            trainers = wait_until(lambda: _trainers(side.table), "four trainers that poll", 90)
            time.sleep(12)
            for number in range(times):
                delay, spread = _roundup_once(side, trainers, f"roundup-{number}")
                delays.append(delay)
                spreads.append(spread)
        finally:
            stop.touch()
            job.wait(60)
            side.stop()
    return [
        Figure("start", "dynolog's way (ROUNDUP 1), 5 s polls: start spread", _spread_line(spreads)),
        Figure("order to start", "dynolog's way (ROUNDUP 1), 5 s polls", _delay_line(delays)),
    ]


def _trainers(table: ProcessTable) -> list[str]:
    found = [view.process_id for view in table.snapshot() if view.role is Role.TRAINER and view.polls_kineto]
    return found if len(found) == RANKS else []


def _roundup_once(side: TrainerSide, trainers: list[str], name: str) -> tuple[float, float]:
    traces = Path(side.directory.traces)
    ordered = time.time_ns()
    for rank, process_id in enumerate(trainers):
        config = (
            f"ACTIVITIES_LOG_FILE={traces}/{name}-r{rank}.json\nREQUEST_TRACE_ID={name}-r{rank}\n"
            f"PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS={ITERATIONS}\n"
        )
        side.table.place_order(process_id, config, ordered + 30 * 10**9, None)
    wait_until(lambda: len(list(traces.glob(f"{name}-*.json"))) == RANKS, "four traces", 60)
    time.sleep(0.5)
    with tempfile.TemporaryDirectory() as out:
        for trace in traces.glob(f"{name}-*.json"):
            trace.rename(Path(out) / trace.name)
        report = analyze_directory(Path(out))
    starts = [rank.start_ns for rank in report.start.ranks]
    return (max(starts) - ordered) / 1e9, (max(starts) - min(starts)) / 1e6


def measure(local: Local, *, quick: bool) -> list[Figure]:
    """All of this module, on one hub."""
    few = 2 if quick else 6
    return [
        *measure_agent_captures(local, 3 if quick else 20),
        *measure_canary(local, few),
        *measure_time_captures(local, few, 1),
        *measure_time_captures(local, few, 5),
        *measure_roundup(few),
    ]
