"""A `fleetprof run` of the end-to-end tests, and the processes that it started."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.waiting import wait_until

TRAINING = Path(__file__).with_name("training.py")
TORCHRUN = Path(__file__).with_name("torchrun")
LAUNCHER = Path(__file__).with_name("launcher.py")
NO_COMPILER = Path(__file__).with_name("no_compiler.py")


def processes_of(session_leader: int) -> list[tuple[int, int, str]]:
    """(pid, ppid, command line) of a process and all its descendants."""
    table = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            table[int(entry.name)] = (int(stat.rpartition(")")[2].split()[1]), command)
    family = {session_leader}
    while found := {pid for pid, (ppid, _) in table.items() if ppid in family and pid not in family}:
        family |= found
    return [(pid, *table[pid]) for pid in sorted(family) if pid in table]


@dataclass
class LocalJob:
    """A running `fleetprof run -- …`."""

    name: str
    folder: Path
    world_size: int
    agents_seen: Callable[[], int]
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def output(self) -> Path:
        """The output of the job."""
        return self.folder / "output"

    def await_steps(self, agents: int | None = None) -> None:
        """Returns once every rank has made its first iterations, and the hub has heard so from `agents` (all) of them.

        A loaded machine imports PyTorch for so long that the hub would not wait for an agent's first word any more.
        """
        wait_until(
            lambda: (
                all((self.folder / f"progress.{rank}").exists() for rank in range(self.world_size))
                or self.process.poll() is not None
            ),
            f"the first iterations of {self.name}\n{self.output.read_text()[-2000:]}",
            120,
        )
        assert self.process.poll() is None, self.output.read_text()[-3000:]
        wanted = self.world_size if agents is None else agents
        wait_until(lambda: self.agents_seen() >= wanted, f"{wanted} agents of {self.name}", every_s=0.25)

    def sidecar_pid(self) -> int:
        """The pid of the sidecar that is there now."""
        return wait_until(
            lambda: next(
                (
                    p
                    for p, pp, c in processes_of(self.process.pid)
                    if "fleetprof_sidecar.main" in c and pp == self.process.pid
                ),
                0,
            ),
            "the sidecar",
        )

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def stop(self) -> int:
        """Ends the training in the orderly way; the exit code of `fleetprof run`."""
        self.touch("stop")
        return self.process.wait(90)


@dataclass
class Command:
    """A `fleetprof` command that runs beside the test."""

    process: subprocess.Popen[bytes]
    output: Path

    def read_output(self) -> str:
        """All that it wrote so far."""
        return self.output.read_text()
