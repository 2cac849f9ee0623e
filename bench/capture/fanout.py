"""One hub, 32 sidecars, 256 simulated ranks that speak the real datagrams: how fast does an order reach all of them?

The sidecars are the real program, one process each. The ranks poll every second, as with our config file: a rank can
take its order only when it polls, so the figure holds a wait between 0 and 1 s that is Kineto's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from figures import Figure, quantile
from fleetprof_api.hub import hub_pb2 as pb
from harness.training.local_system import Local, outcome, states
from harness.waiting import wait_until

SIMULATION = Path(__file__).parents[2] / "tests" / "simulation" / "trainer.py"
SIDECARS = 32
RANKS_EACH = 8
GROUPS = 4  # processes that simulate


def measure(local: Local) -> list[Figure]:
    ranks = SIDECARS * RANKS_EACH
    with ExitStack() as cleanup:
        folders = [
            Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="fp", dir="/tmp"))) for _ in range(SIDECARS)
        ]
        for number, folder in enumerate(folders):
            cleanup.callback(_stop, _start_sidecar(local, folder, number))
        wait_until(lambda: all((folder / "dynolog").exists() for folder in folders), "32 sidecars", 120)
        started = time.time_ns()
        share = SIDECARS // GROUPS
        for group in range(GROUPS):
            words = [
                word for folder in folders[group * share : (group + 1) * share] for word in ("--directory", str(folder))
            ]
            process = subprocess.Popen(
                [sys.executable, str(SIMULATION), *words, "--ranks", str(RANKS_EACH), "--first-rank",
                 str(group * share * RANKS_EACH), "--world-size", str(ranks), "--step-ms", "100",
                 "--started-unix-ns", str(started)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            cleanup.callback(_stop, process)
        wait_until(lambda: _ranks_seen(local) == ranks, f"{ranks} ranks", 120)
        time.sleep(5)
        uid = local.submit("fanout", iterations=5)
        status = local.await_end(uid, 180)
    armed = [(line.armed_unix_ns - status.armed_unix_ns) / 1e9 for line in status.ranks if line.armed_unix_ns]
    order_delays_s = [at - status.armed_unix_ns / 1e9 for at in _asked_at(local)]
    whole = sum(state == "UPLOADED" for state in states(status).values())
    reported = sum(bool(line.state) and (line.state != pb.FAILED or bool(line.reason)) for line in status.ranks)
    p99 = quantile(armed, 0.99)
    title = f"{ranks} ranks on {SIDECARS} sidecars"
    return [
        Figure("fan-out", f"{title}: order at the sidecar", f"p99 {1000 * quantile(order_delays_s, 0.99):.0f} ms"),
        Figure(
            "fan-out", f"{title}: order taken by the rank",
            f"p50 {quantile(armed, 0.5):.2f} s, p99 {p99:.2f} s", "p99 <= 1 s", p99 <= 1.0,
        ),
        Figure(
            "fan-out", "ledger lines with a final state, traces delivered",
            f"{reported} and {whole} of {ranks}, {outcome(status)[1]}",
            f"{ranks}", reported == whole == ranks,
        ),
    ]  # fmt: skip


def _start_sidecar(local: Local, folder: Path, number: int) -> subprocess.Popen[bytes]:
    spool = local.folder / f"spool-{number}"
    words = [
        *("--directory", str(folder), "--spool", str(spool), "--state", str(local.state)),
        *("--namespace", "local", "--workload", "batch/v1/Job/fanout"),
        *("--pod-name", f"pod-{number}", "--node-name", f"node-{number}"),
    ]
    with (local.folder / f"sidecar-{number}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "fleetprof_sidecar.main", *words], stdin=subprocess.DEVNULL, stderr=log
        )


def _asked_at(local: Local) -> list[float]:
    """The time at which each rank's order reached its sidecar (Unix seconds), from the sidecars' own logs."""
    lines = [json.loads(line) for log in local.folder.glob("sidecar-*.log") for line in log.read_text().splitlines()]
    times = [line["time"] for line in lines if line["message"] == "asked"]
    return [datetime.fromisoformat(time_text).timestamp() for time_text in times]


def _ranks_seen(local: Local) -> int:
    fleet = local.fleet()
    return sum(p.has_agent and p.polls_kineto and p.step.step > 1 for s in fleet.sidecars for p in s.processes)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
