"""The kernel's account of how the training process is scheduled: on a core, waiting for one, and for how many.

Guarantees: nothing is raised; what cannot be read is None. A reading takes some microseconds; the sum over all threads
takes a microsecond or two for each, and is made so seldom that it takes a thousandth of the time.
Sources: proc(5), cgroups(7), cgroup-v2.rst, sched-bwc.rst, clock_gettime(2), getrusage(2).
"""

from __future__ import annotations

import os
import time
from typing import Callable

from fleetprof_agent.errors import pass_on
from fleetprof_agent.process.control_groups import find_groups, read_text

try:
    import resource
except ImportError:  # not everywhere
    resource = None  # type: ignore[assignment]

EVERY_NS = 10_000_000  # with cold caches a reading takes as long as all else of a look
MOST_TASKS = 512
SHARE_OF_SUM = 1000
NOT_READ = (None, None, None, None, None)


class SchedulerFigures:
    """Figures of this process and one thread of it, `task` at the kernel. `torch_threads`: torch.get_num_threads()."""

    def __init__(
        self,
        task: int,
        torch_threads: int | None,
        proc: str = "/proc",
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock = clock
        self._tasks = proc + "/self/task"
        self._proc = proc
        self._task = task
        self._descriptor = -1
        self._is_open = False
        self._next = self._next_sum = 0
        self.cores: dict[str, int | None] = {"torch_threads": torch_threads}

    def read(self) -> tuple[int | None, int | None, int | None, int | None, int | None]:
        """(ran, waited) of the thread, (ran, waited) of all threads, ns; involuntary switches of the process.

        All None where the latest reading is younger than EVERY_NS.
        """
        now = self._clock()
        if now < self._next:
            return NOT_READ
        self._next = now + EVERY_NS
        if not self._is_open:
            self._open()
        ran, waited = self._read_thread()
        switches = None if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        return ran, waited, time.process_time_ns(), self._sum_waits(), switches

    def close(self) -> None:
        """Closes the file; may be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self) -> None:
        self._is_open = True
        self.cores.update(usable_cores=_usable_cores(), cpu_limit_millicores=_read_limit(self._proc))
        try:
            self._descriptor = os.open("%s/%d/schedstat" % (self._tasks, self._task), os.O_RDONLY)
        except OSError as error:
            pass_on(error)

    def _read_thread(self) -> tuple[int | None, int | None]:
        if self._descriptor < 0:
            return None, None
        try:
            return _parse(os.pread(self._descriptor, 80, 0))
        except OSError as error:
            pass_on(error)
            return None, None

    def _sum_waits(self) -> int | None:
        began = self._clock()
        if began < self._next_sum:
            return None
        total: int | None = 0
        try:
            tasks = os.listdir(self._tasks)
        except OSError as error:
            pass_on(error)
            tasks = []
        if not 0 < len(tasks) <= MOST_TASKS:
            total = None
            tasks = []
        for task in tasks:
            try:
                descriptor = os.open(self._tasks + "/" + task + "/schedstat", os.O_RDONLY)
            except OSError as error:
                pass_on(error)
                continue  # it has just ended
            try:
                waited = _parse(os.read(descriptor, 80))[1]
            except OSError as error:
                pass_on(error)
                waited = None
            finally:
                os.close(descriptor)
            if waited is not None and total is not None:
                total += waited
        ended = self._clock()
        self._next_sum = ended + SHARE_OF_SUM * (ended - began)
        return total


def _parse(text: bytes) -> tuple[int | None, int | None]:
    words = text.split()
    if len(words) < 2 or not (words[0].isdigit() and words[1].isdigit()):
        return None, None
    ran, waited = int(words[0]), int(words[1])
    return (ran, waited) if ran < 2**63 and waited < 2**63 else (None, None)


def _read_limit(proc: str) -> int | None:
    """The least quota of the process's control groups, thousandths of a core; None: none."""
    found = []
    for folder, version in find_groups("cpu", ("cpu.max", "cpu.cfs_quota_us"), proc + "/self", proc):
        if version == 0:
            words = read_text(folder + "/cpu.max").split()
        else:
            words = [read_text(folder + "/" + name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
            found.append(1000 * int(words[0]) // int(words[1]))
    return min(found) if found and min(found) < 2**31 else None


def _usable_cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError) as error:
        pass_on(error)
        return None
