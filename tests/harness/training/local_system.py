"""A whole local fleetprof for the end-to-end tests and the bench: `up`, `run` and real training, all stopped by pid.

Everything goes through what a user has: the command line and the gRPC service behind it.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_api.hub.local_hub import find_hub
from fleetprof_api.ledger import RankState
from fleetprof_api.report.report import Report

from harness import forked
from harness.forked import StartedCommand
from harness.training.local_job import LAUNCHER, TORCHRUN, TRAINING, Command, LocalJob, processes_of
from harness.waiting import PATIENCE_S, wait_until


@dataclass
class Local:
    """One state directory with its hub, jobs and captures."""

    folder: Path
    environment: dict[str, str]
    forks: bool = False
    """Whether hub and commands are forked from a process that has imported them; not what runs beside a job."""
    hub: StartedCommand | None = None
    jobs: list[LocalJob] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    extra_up: list[str] = field(default_factory=list)
    connection: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def command(self, *words: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs one `fleetprof` command to its end."""
        if self.forks:
            return forked.run("fleetprof_cli.main", ["fleetprof", *words], self.environment, patience_s=timeout)
        program = [sys.executable, "-m", "fleetprof_cli.main", *words]
        return subprocess.run(
            program, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def begin(self, *words: str) -> Command:
        """Starts one `fleetprof` command as users do; returns at once."""
        output = self.folder / f"{words[0]}.log"
        self.commands.append(command := Command(self._start_program(words, output), output))
        return command

    def _start_program(self, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "fleetprof_cli.main", *words]
        with log.open("ab") as file:
            return subprocess.Popen(program, env=self.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def up(self) -> None:
        """Starts the hub and waits until it answers."""
        words, log = ("up", "--no-ui", *self.extra_up), self.folder / "up.log"
        if self.forks:
            hub: StartedCommand = forked.start("fleetprof_cli.main", ["fleetprof", *words], self.environment, log)
        else:
            hub = self._start_program(words, log)
        self.hub = hub
        wait_until(lambda: self._answers() or hub.poll() is not None, "the hub", 120)
        assert hub.poll() is None, log.read_text()[-3000:]

    def _answers(self) -> bool:
        try:
            self.captures().List(pb.ListRequest(), timeout=2, metadata=self._metadata())
        except (grpc.RpcError, OSError, ValueError):
            return False
        return True

    def kill_hub(self) -> None:
        """The hub dies without a word."""
        assert self.hub is not None
        self.hub.kill()
        self.hub.wait(10)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {(self.state / 'token').read_text().strip()}"),)

    def captures(self) -> CapturesStub:
        """The hub's service for clients, over a channel to where the hub is now."""
        self._hang_up()
        way = self.connection.enter_context(find_hub(self.state))
        self.connection.enter_context(channel := grpc.insecure_channel(way.target))
        return CapturesStub(channel)

    def _hang_up(self) -> None:
        self.connection.close()

    def fleet(self) -> pb.FleetReply:
        """All sidecars and processes that the hub knows."""
        return self.captures().Fleet(pb.FleetRequest(), metadata=self._metadata(), timeout=10)

    def run(
        self,
        name: str,
        *arguments: str,
        ranks: int = 4,
        python: str = sys.executable,
        python_flags: tuple[str, ...] = (),
        run_flags: tuple[str, ...] = (),
        torchrun: tuple[str, ...] | None = None,
        environment: dict[str, str] | None = None,
    ) -> LocalJob:
        """Starts a training job; returns at once. `torchrun`: options of the one that starts its ranks; None: ours."""
        folder = self.folder / name
        folder.mkdir()
        script = [
            str(TRAINING),
            "--progress",
            str(folder / "progress"),
            "--stop-when",
            str(folder / "stop"),
            *arguments,
        ]
        environment = environment or {}
        launcher = [str(LAUNCHER), str(ranks)]
        if torchrun is not None:
            launcher = [str(TORCHRUN), "--nproc-per-node", str(ranks), "--standalone", *torchrun]
        words = [python, *python_flags, *(launcher if ranks > 1 else []), *script]
        return self._start(
            LocalJob(name, folder, ranks, lambda: self._count_agents(name)), words, run_flags, environment
        )

    def run_shared(
        self,
        name: str,
        *,
        ranks: int,
        agents: int | None = None,
        **how: Any,
    ) -> LocalJob:
        """Starts a job that several tests capture, and waits for its first iterations; it outlasts all of them."""
        job = self.run(name, "--seconds", "1800", ranks=ranks, **how)
        job.await_steps(agents)
        return job

    def run_command(
        self, name: str, *words: str, run_flags: tuple[str, ...] = (), environment: dict[str, str] | None = None
    ) -> LocalJob:
        """Starts any command as a job."""
        folder = self.folder / name
        folder.mkdir()
        return self._start(LocalJob(name, folder, 0, lambda: 0), list(words), run_flags, environment or {})

    def _start(
        self, job: LocalJob, words: list[str], run_flags: tuple[str, ...], environment: dict[str, str]
    ) -> LocalJob:
        output = job.output.open("wb")
        job.process = subprocess.Popen(
            [sys.executable, "-m", "fleetprof_cli.main", "run", "--name", job.name, *run_flags, "--", *words],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        output.close()
        self.jobs.append(job)
        return job

    def _count_agents(self, name: str) -> int:
        """The number of ranks of a job the hub has heard an optimizer step of."""
        sidecars = [sidecar for sidecar in self.fleet().sidecars if sidecar.identity.workload.name == name]
        return sum(process.step.iteration_ns > 0 for sidecar in sidecars for process in sidecar.processes)

    def submit(self, name: str, *, iterations: int = 5, deadline_s: int = 60, **spec: Any) -> str:
        """Asks for a capture of a job; its uid."""
        request = {
            "apiVersion": "fleetprof.io/v1alpha1",
            "kind": "ProfileRequest",
            "metadata": {"name": f"{name}-{time.monotonic_ns() % 10**8}"},
            "spec": {
                "target": {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": name}},
                "window": {"iterations": iterations},
                "activeDeadlineSeconds": deadline_s,
                "canary": "Never",
                # What else runs on the machine slows the ranks down as well; that guard has tests of its own.
                "limits": {"maxSlowdownPercent": 0},
                **spec,
            },
        }
        status = self.captures().Submit(
            pb.SubmitRequest(namespace="local", request_json=json.dumps(request)), metadata=self._metadata(), timeout=20
        )
        return status.uid

    def status(self, uid: str) -> pb.CaptureStatus:
        listed = self.captures().List(pb.ListRequest(), metadata=self._metadata(), timeout=10)
        return next(capture for capture in listed.captures if capture.uid == uid)

    def cancel(self, uid: str) -> None:
        self.captures().Cancel(pb.CaptureRef(uid=uid), metadata=self._metadata(), timeout=20)

    def await_state(self, uid: str, state: RankState, ranks: int = 1) -> None:
        """Returns once so many ranks have come at least so far; the states are watched, none is missed."""
        order = ["ASKED", "ARMED", "STARTED", "WRITTEN", "UPLOADED", "FAILED"]

        def reached(status: pb.CaptureStatus) -> bool:
            there = [order.index(pb.RankState.Name(line.state)) for line in status.ranks if line.state]
            return sum(place >= order.index(state) for place in there) >= ranks

        for status in self.captures().Watch(pb.CaptureRef(uid=uid), metadata=self._metadata(), timeout=PATIENCE_S):
            if reached(status):
                return
        raise AssertionError(f"{uid} ended before any rank was {state}")

    def await_end(self, uid: str, patience_s: float = 120) -> pb.CaptureStatus:
        """The final status of a capture; the hub may be restarted meanwhile."""

        def ended() -> pb.CaptureStatus | None:
            try:
                status = self.status(uid)
            except (grpc.RpcError, OSError, StopIteration, ValueError):
                return None
            return status if status.finished else None

        return wait_until(ended, f"the end of {uid}", patience_s, every_s=0.25)

    def report(self, uid: str) -> Report:
        files = [path for path in self.state.rglob("report.json") if path.parent.name == uid]
        assert files, f"no report of {uid}"
        return msgspec.json.decode(files[0].read_bytes(), type=Report)

    def close(self) -> None:
        """Stops all that is left, by pid, and insists that nothing stays behind."""
        for command in self.commands:
            if command.process.poll() is None:
                command.process.kill()
                command.process.wait(10)
        for job in self.jobs:
            if job.process.poll() is None:
                family = processes_of(job.process.pid)
                for pid, _, line in family:
                    if "fleetprof" not in line or str(TRAINING) in line:
                        _kill(pid, signal.SIGTERM)
                try:
                    job.process.wait(40)
                except subprocess.TimeoutExpired:
                    for pid, _, _ in processes_of(job.process.pid):
                        _kill(pid, signal.SIGKILL)
                    job.process.wait(10)
        if self.hub is not None and self.hub.poll() is None:
            self.hub.send_signal(signal.SIGINT)
            try:
                self.hub.wait(30)
            except subprocess.TimeoutExpired:
                self.hub.kill()
                self.hub.wait(10)
        self._hang_up()
        shutil.rmtree(self.environment["TMPDIR"], ignore_errors=True)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def failures(status: pb.CaptureStatus) -> dict[int, str]:
    """rank → reason of the ranks that failed."""
    return {line.rank: line.reason for line in status.ranks if pb.RankState.Name(line.state) == "FAILED"}


def states(status: pb.CaptureStatus) -> dict[int, str]:
    """rank → state."""
    return {line.rank: pb.RankState.Name(line.state) for line in status.ranks}


def outcome(status: pb.CaptureStatus) -> tuple[str, str]:
    """(status, reason) of the Succeeded condition."""
    return next((c.status, c.reason) for c in status.conditions if c.type == "Succeeded")


def make_local(folder: Path, *, forks: bool = False) -> Local:
    """A system in `folder` whose hub is not up yet; the caller closes it. `forks` as in Local."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FLEETPROF_", "KINETO_"))}
    environment |= {"FLEETPROF_STATE": str(folder / "state"), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    # torchrun leaves its log directory behind; a folder of pytest would be too long for socket paths.
    environment["TMPDIR"] = tempfile.mkdtemp(prefix="fp", dir="/tmp")
    return Local(folder, environment, forks)
