"""The place of the training thread: when the agent looks, how often, what it keeps of a look, what it never does."""

import gc
import os
import threading
import weakref
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_agent import wire
from fleetprof_agent.samples import stacks
from fleetprof_agent.samples.schedule import EVERY_NS, SchedulerFigures
from fleetprof_agent.samples.stacks import StackTable
from fleetprof_agent.samples.thread_samples import COLUMNS, MOST_SAMPLES, ThreadSamples
from fleetprof_api.samples import ThreadColumns

MS = 1_000_000
STEP_NS = 100 * MS
WINDOW = {"first_step": 10, "last_step": 29}  # two seconds
FILE = "/home/me/train.py"


def code_of(function: str, file: str = FILE, line: int = 7) -> Any:
    """A code object of that name, whose one line is that."""
    scope: dict[str, Any] = {}
    exec(compile("\n" * (line - 1) + f"def {function}(): pass", file, "exec"), scope)
    return scope[function].__code__


def stack_of(*functions: str, file: str = FILE, line: int = 7) -> list[tuple[Any, int]]:
    """The text of a stack in which `functions` have called each other, the outermost first."""
    return [(code_of(name, file, line), 2) for name in reversed(functions)]


class Sent:
    """The messages that were sent, as the sidecar would read it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.is_reachable = True

    def send(self, kind: str, **fields: Any) -> bool:
        if self.is_reachable:
            self.messages.append(wire.decode(wire.encode(kind, capture="c", **fields), wire.FROM_AGENT))
        return self.is_reachable

    def of(self, kind: str, field: str) -> list[Any]:
        return [value for message in self.messages if message["t"] == kind for value in message[field]]


class Looks:
    """A training thread whose frame is given, and a clock of the looks' own work."""

    def __init__(self, cost_ns: int = 0) -> None:
        self.times: list[int] = []
        self.now = 0
        self.fails = False
        self._cost, self._spent = cost_ns, 0

    def read_stack(self, thread: int) -> list[tuple[Any, int]]:
        if self.fails:
            raise KeyError(thread)
        self.times.append(self.now)
        self._spent += self._cost
        return stack_of("main", "read_batch")

    def samples(self, **arm: Any) -> ThreadSamples:
        return ThreadSamples(
            arm, 5, SchedulerFigures(threading.get_native_id(), 3), STEP_NS, self.read_stack, lambda: self._spent
        )

    def run(self, samples: ThreadSamples, until: int, *, step_ns: int = STEP_NS) -> None:
        """Calls whenever it wants to be called; a step ends every `step_ns`."""
        while self.now < until and not samples.is_over:
            samples.tick(self.now, self.now // step_ns)
            self.now = max(samples.due, self.now + 1)


@pytest.mark.parametrize(
    ("arm", "first", "last", "step_ns"),
    [
        (WINDOW, 700 * MS, 2900 * MS, STEP_NS),
        ({"start_unix_ns": 500 * MS, "end_unix_ns": 2500 * MS}, 500 * MS, 2500 * MS, STEP_NS),
        (WINDOW, 2 * 700 * MS, 2 * 2900 * MS, 2 * STEP_NS),  # slower than it was
    ],
    ids=["by step", "by time", "slower than expected"],
)
def test_it_looks_from_a_little_before_the_window_until_its_end(
    arm: dict[str, int], first: int, last: int, step_ns: int
) -> None:
    looks = Looks()
    looks.run(looks.samples(**arm), 20_000 * MS, step_ns=step_ns)
    assert first <= looks.times[0] <= first + 10 * MS
    assert last - 50 * MS <= looks.times[-2] < last <= looks.times[-1] <= last + 50 * MS
    assert 200 <= len(looks.times) <= MOST_SAMPLES


def test_a_window_that_never_ends_is_looked_at_a_bounded_number_of_times() -> None:
    looks = Looks()
    samples = looks.samples(**WINDOW)
    looks.run(samples, 3_600_000 * MS, step_ns=10**15)
    assert (looks.times, samples.is_over) == ([], False)  # it has not begun
    samples.end()
    hung = looks.samples(first_step=1, last_step=20)
    looks.now = 1
    looks.run(hung, 3_600_000 * MS, step_ns=10**15)
    assert (len(looks.times), hung.is_over) == (MOST_SAMPLES, True)


def test_memory_is_looked_at_before_the_window_and_never_within_it() -> None:
    looks, sent = Looks(), Sent()
    samples = looks.samples(**WINDOW)
    looks.run(samples, 600 * MS)
    assert not looks.times
    assert samples.flush(sent.send)
    looks.run(samples, 20_000 * MS)
    assert samples.flush(sent.send)
    assert len(sent.of("held", "own_bytes")) >= 1
    assert all(held > 1 << 20 for held in sent.of("held", "own_bytes"))


def test_the_collector_is_heard_from_the_order_on_and_not_beyond_the_end() -> None:
    callbacks, looks = [*gc.callbacks], Looks()
    samples = looks.samples(**WINDOW)
    samples.tick(0, 0)
    assert len(gc.callbacks) == len(callbacks) + 1
    assert not looks.times
    samples.end()
    assert gc.callbacks == callbacks


@pytest.mark.parametrize(("cost_ns", "least"), [(0, 5 * MS), (30_000, 8 * MS), (MS, 105 * MS)])
def test_looks_take_at_most_a_hundredth_of_the_time(cost_ns: int, least: int) -> None:
    looks = Looks(cost_ns)
    looks.run(looks.samples(start_unix_ns=1, end_unix_ns=300 * MS), 300 * MS)
    gaps = [later - earlier for earlier, later in zip(looks.times, looks.times[1:], strict=False)]
    assert min(gaps) >= least


@pytest.mark.parametrize("arm", [{}, {"first_step": None}, {"first_step": "10"}, {"start_unix_ns": -1}])
def test_without_a_window_it_never_looks(arm: dict[str, Any]) -> None:
    looks = Looks()
    looks.run(looks.samples(**arm), 5_000 * MS)
    assert looks.times == []


def test_what_fails_ends_it_and_nothing_else() -> None:
    looks = Looks()
    looks.fails = True
    samples = looks.samples(start_unix_ns=1, end_unix_ns=300 * MS)
    samples.tick(2, 0)
    assert samples.is_over
    assert samples.flush(Sent().send)


def test_what_was_seen_is_told_once_places_and_stacks_before_what_names_them() -> None:
    looks, sent = Looks(), Sent()
    samples = looks.samples(start_unix_ns=1, end_unix_ns=300 * MS)
    looks.run(samples, 300 * MS)
    sent.is_reachable = False
    assert not samples.flush(sent.send)
    sent.is_reachable = True
    assert samples.flush(sent.send)
    assert samples.flush(sent.send)
    messages = [message for message in sent.messages if message["t"] != "collections"]  # Python may collect meanwhile
    assert [message["t"] for message in messages] == ["places", "stacks", "thread", "held"]
    assert (sent.of("places", "file"), sent.of("places", "function")) == ([FILE, FILE], ["read_batch", "main"])
    assert sent.of("places", "line") == [7, 7]
    assert sent.of("stacks", "stacks") == [[0, 1]]
    assert sent.of("thread", "stack") == [0] * len(looks.times)
    assert messages[2]["torch_threads"] == 3
    assert messages[2]["usable_cores"] == len(os.sched_getaffinity(0))


def test_the_columns_are_those_of_the_schema() -> None:
    assert ThreadColumns.__struct_fields__ == COLUMNS


# ---------------------------------------------------------------- stacks


def test_code_is_let_go_once_it_is_over() -> None:
    table = StackTable()
    scope: dict[str, Any] = {}
    exec("import sys\ndef look(table): return table.intern([(sys._getframe().f_code, 2)])", scope)
    code = weakref.ref(scope["look"].__code__)
    scope["look"](table)
    del scope
    gc.collect()
    assert code() is not None
    table.forget_code()
    gc.collect()
    assert code() is None


def test_our_own_frames_are_not_the_jobs() -> None:
    own = str(Path(wire.__file__).with_name("agent.py"))
    table, sent = StackTable(), Sent()
    hook = stack_of("record_step", file=own)
    assert table.intern(hook) is None
    assert table.intern(hook + stack_of("step")) == 0  # the optimizer of the job called it
    assert table.flush(sent.send)
    assert sent.of("places", "function") == ["step"]


def test_texts_stacks_and_numbers_are_bounded_and_fit_their_datagrams() -> None:
    table, sent = StackTable(), Sent()
    for number in range(stacks.MOST_PLACES + 50):
        file = '/"\\' + "é" * 300 + f"/{number}/" + '"\\' * 40
        table.intern(stack_of(*["f" * 150] * 60, file=file, line=number + 1))
    assert table.flush(sent.send)
    files = sent.of("places", "file")
    assert len(files) == stacks.MOST_PLACES
    assert all(len(file) == stacks.FILE_CHARACTERS and file.isascii() and file.isprintable() for file in files)
    assert {len(function) for function in sent.of("places", "function")} == {stacks.FUNCTION_CHARACTERS}
    messages = sent.of("stacks", "stacks")
    assert len(messages) <= stacks.MOST_STACKS
    assert max(map(len, messages)) == stacks.DEEPEST


def test_a_full_message_of_samples_fits_its_datagram() -> None:
    sent = Sent()
    schedule: Any = SimpleNamespace(read=lambda: (2**63 - 1,) * 5, close=lambda: None, cores={})
    samples = ThreadSamples(WINDOW, 5, schedule, STEP_NS, lambda _: stack_of("f"))
    while not samples.is_over:
        samples.tick(samples.due, WINDOW["first_step"])
    assert samples.flush(sent.send)
    assert len(sent.of("thread", "at_unix_ns")) == MOST_SAMPLES


# ---------------------------------------------------------------- the kernel's account


def test_the_kernels_account_of_this_thread() -> None:
    times = count(EVERY_NS, MS)  # the sum over all threads, two looks at the clock, takes a thousandth of its pause
    now = [0]
    schedule = SchedulerFigures(threading.get_native_id(), None, clock=lambda: now[0] + next(times))
    first = schedule.read()
    sum(range(300_000))
    assert schedule.read() == (None,) * 5, "it has just been read"
    now[0] += EVERY_NS
    second = schedule.read()
    schedule.close()
    assert None not in first[:3]
    assert all(later > earlier for earlier, later in zip(first[::2][:2], second[::2][:2], strict=True))  # type: ignore[operator]
    assert first[3] is not None
    assert second[3] is None, "the sum over all threads is seldom made"
    now[0] += EVERY_NS
    assert schedule.read()[:2] == (None, None)


@pytest.mark.parametrize(
    ("files", "millicores"),
    [
        ({"v2/a/cpu.max": "150000 100000\n", "v2/cpu.max": "max 100000\n"}, 1500),
        ({"v2/a/cpu.max": "max 100000\n"}, None),
        ({"v2/a/cpu.max": "400000 100000\n", "v2/cpu.max": "200000 100000\n"}, 2000),
        ({"v2/a/cpu.max": "nonsense"}, None),
        ({"v1/a/cpu.cfs_quota_us": "50000\n", "v1/a/cpu.cfs_period_us": "100000\n"}, 500),
        ({"v1/a/cpu.cfs_quota_us": "-1\n", "v1/a/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_its_control_groups(tmp_path: Path, files: dict[str, str], millicores: int | None) -> None:
    mounts = f"30 20 0:25 / {tmp_path}/v2 rw - cgroup2 none rw\n31 20 0:26 / {tmp_path}/v1 rw - cgroup none rw,cpu\n"
    known = {"proc/self/mountinfo": mounts, "proc/self/cgroup": "0::/a\n4:cpu,cpuacct:/a\n"}
    for name, text in (files | known).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    schedule = SchedulerFigures(1, None, proc=f"{tmp_path}/proc")
    schedule.read()
    assert schedule.cores["cpu_limit_millicores"] == millicores
