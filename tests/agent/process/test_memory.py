"""The memory that a process may still take, from the files of /proc and of control groups of both versions."""

import os
from pathlib import Path

import pytest
from fleetprof_agent.process.memory import PAGE_BYTES, ProcessMemory, give_back

MIB = 1 << 20
GIB = 1 << 30


class Machine:
    """A folder that looks like /proc and /sys/fs/cgroup."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mounts: list[str] = []
        self.memberships: list[str] = []
        self.write("proc/self/limits", "Limit  Soft\nMax address space   unlimited  unlimited  bytes\n")
        self.write("proc/self/statm", "0 0 0 0 0 0 0\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def mount(self, version: int, path: str, root: str = "/") -> None:
        place = self.root / ("v2" if version == 2 else "v1")
        place.mkdir(exist_ok=True)
        kind, options = ("cgroup2", "rw") if version == 2 else ("cgroup", "rw,memory")
        self.mounts.append(f"30 20 0:25 {root} {place} rw,relatime - {kind} none {options}")
        self.memberships.append(f"0::{path}" if version == 2 else f"4:cpu,memory:{path}")

    def group(self, name: str, limit: int | str, used: int, inactive: int = 0, active: int = 0) -> None:
        if name.startswith("v2"):
            self.write(f"{name}/memory.max", f"{limit}\n")
            self.write(f"{name}/memory.current", f"{used}\n")
            self.write(f"{name}/memory.stat", f"anon 5\ninactive_file {inactive}\nactive_file {active}\n")
        else:
            self.write(f"{name}/memory.limit_in_bytes", f"{limit}\n")
            self.write(f"{name}/memory.usage_in_bytes", f"{used}\n")
            text = f"inactive_file 1\nactive_file 1\ntotal_inactive_file {inactive}\ntotal_active_file {active}\n"
            self.write(f"{name}/memory.stat", text)

    def memory(self) -> ProcessMemory:
        self.write("proc/self/mountinfo", "".join(f"{line}\n" for line in self.mounts))
        self.write("proc/self/cgroup", "".join(f"{line}\n" for line in self.memberships))
        return ProcessMemory(proc=str(self.root / "proc"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_that_can_be_read_is_nothing_known(machine: Machine) -> None:
    assert machine.memory().headroom_bytes() == 0


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_group_on_the_way_up_counts_without_its_page_cache(machine: Machine, version: int) -> None:
    unlimited = "max" if version == 2 else 9223372036854771712
    machine.mount(version, "/pod/trainer")
    machine.group(f"v{version}", unlimited, 90 * GIB)
    machine.group(f"v{version}/pod", 4 * GIB, 3 * GIB, inactive=GIB, active=GIB)
    machine.group(f"v{version}/pod/trainer", unlimited, GIB)
    assert machine.memory().headroom_bytes() == 4 * GIB - (3 * GIB - GIB - GIB // 2)
    machine.group(f"v{version}/pod/trainer", 2 * GIB, GIB)
    assert machine.memory().headroom_bytes() == GIB


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/", "/"),  # a container with a cgroup namespace of its own
        ("/kubepods/pod1/c1", "/kubepods/pod1/c1"),  # one without: it sees its group mounted as the root
        ("/", "/kubepods/pod1/c1"),  # the host's path, of which nothing is mounted
        ("/", "/../other"),  # a process in another namespace
    ],
)
def test_a_container_finds_its_own_limit(machine: Machine, root: str, path: str) -> None:
    machine.mount(2, path, root)
    machine.group("v2", 2 * GIB, 700 * MIB)
    assert machine.memory().headroom_bytes() == 2 * GIB - 700 * MIB


def test_the_limit_that_slows_a_group_down_counts_like_the_one_that_kills(machine: Machine) -> None:
    machine.mount(2, "/")
    machine.group("v2", 4 * GIB, GIB)
    machine.write("v2/memory.high", f"{2 * GIB}\n")
    assert machine.memory().headroom_bytes() == GIB
    machine.write("v2/memory.max", "max\n")
    assert machine.memory().headroom_bytes() == GIB


def test_the_limit_may_change_while_the_process_runs(machine: Machine) -> None:
    machine.mount(2, "/")
    machine.group("v2", 4 * GIB, GIB)
    memory = machine.memory()
    assert memory.headroom_bytes() == 3 * GIB
    machine.group("v2", 2 * GIB, GIB)
    assert memory.headroom_bytes() == GIB


def test_a_group_above_its_limit_has_next_to_nothing(machine: Machine) -> None:
    machine.mount(1, "/")
    machine.group("v1", GIB, 2 * GIB)
    assert machine.memory().headroom_bytes() == 1


@pytest.mark.parametrize(("name", "column"), [("Max address space", 0), ("Max data size", 5)])
def test_limits_of_the_process_itself_count(machine: Machine, name: str, column: int) -> None:
    machine.write("proc/self/limits", f"{name}        {GIB}            {GIB}            bytes\n")
    machine.write("proc/self/statm", " ".join("100" if at == column else "0" for at in range(7)))
    assert machine.memory().headroom_bytes() == GIB - 100 * PAGE_BYTES


def test_the_machine_has_the_last_word(machine: Machine) -> None:
    machine.write("proc/meminfo", "MemTotal: 99999 kB\nMemAvailable:    1024 kB\n")
    machine.mount(2, "/")
    machine.group("v2", 4 * GIB, GIB)
    assert machine.memory().headroom_bytes() == 1024 * 1024


@pytest.mark.parametrize("text", ["", "x", "0::", "0:/:/\n::\n9:memory", "\udcff"])
def test_damaged_files_are_nothing_known(machine: Machine, text: str) -> None:
    for name in ("cgroup", "mountinfo", "limits", "statm", "status"):
        (machine.root / "proc/self" / name).write_text(text, errors="surrogateescape")
    memory = ProcessMemory(proc=str(machine.root / "proc"))
    assert (memory.headroom_bytes(), memory.resident_bytes(), memory.peak_bytes()) == (0, 0, 0)


def test_this_process_has_some_memory_and_may_have_more() -> None:
    memory = ProcessMemory()
    assert 0 < memory.resident_bytes() <= memory.peak_bytes()
    assert memory.headroom_bytes() > 0
    assert ProcessMemory(os.getpid()).resident_bytes() > 0


def test_giving_back_is_asked_of_the_c_library_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert give_back() in (True, False)
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())  # musl has no malloc_trim
    assert give_back() is False
