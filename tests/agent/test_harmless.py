"""The agent leaves what a job shares with it as it was: descriptors, signals, locks, the interpreter's settings."""

import fcntl
import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fleetprof_agent.process import identity, libc
from harness.training.agent_ground import AgentGround

FORKS = 40


@pytest.fixture
def default_timeout() -> Iterator[None]:
    """The timeout that hub clients and downloaders commonly set."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(60)
    yield
    socket.setdefaulttimeout(before)


def flags_of_descriptors() -> dict[int, tuple[int, int]]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = fcntl.fcntl(int(name), fcntl.F_GETFL), fcntl.fcntl(int(name), fcntl.F_GETFD)
        except OSError:
            continue  # the listing's own
    return found


@pytest.mark.attack
@pytest.mark.usefixtures("default_timeout")
def test_search_for_kinetos_socket_changes_no_descriptor() -> None:
    """A Python socket made around a descriptor would set O_NONBLOCK on what the job shares with others."""
    with ExitStack() as opened, tempfile.TemporaryDirectory(dir="/tmp") as directory:

        def open_blocking(family: int, kind: int) -> socket.socket:
            made = opened.enter_context(socket.socket(family, kind))
            made.setblocking(True)
            return made

        for family, kind in [
            (socket.AF_UNIX, socket.SOCK_STREAM),
            (socket.AF_INET, socket.SOCK_STREAM),
            (socket.AF_INET6, socket.SOCK_DGRAM),
            (socket.AF_NETLINK, socket.SOCK_RAW),
        ]:
            open_blocking(family, kind)
        open_blocking(socket.AF_UNIX, socket.SOCK_DGRAM).bind("\0dynoconfigclient-abstract")
        open_blocking(socket.AF_UNIX, socket.SOCK_DGRAM).bind(f"{directory}/other")
        logger, collector = socket.socketpair()
        for end in (logger, collector):
            end.setblocking(True)
            opened.enter_context(end)
        before = flags_of_descriptors()
        assert identity.find_kineto_socket(directory) == ""
        open_blocking(socket.AF_UNIX, socket.SOCK_DGRAM).bind(f"{directory}/dynoconfigclient12ab")
        assert identity.find_kineto_socket(directory) == "dynoconfigclient12ab"
        after = flags_of_descriptors()
        assert {number: after[number] for number in before} == before


def test_paths_of_sockets(tmp_path: Path) -> None:
    directory = tempfile.mkdtemp(dir="/tmp")
    longest = f"{directory}/{'x' * (107 - len(directory) - 1)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound, socket.socket() as other, open(os.devnull) as file:
        try:
            assert [
                libc.read_socket_path(number) for number in (bound.fileno(), other.fileno(), file.fileno(), 9999)
            ] == [""] * 4
            bound.bind(longest)
            assert libc.read_socket_path(bound.fileno()) == longest
        finally:
            Path(longest).unlink()
            Path(directory).rmdir()


FORK_AND_LISTEN = """
import json
heard, mine = [], os.getpid()
sys.addaudithook(lambda event, _: heard.append(event) if os.getpid() != mine else None)
child = os.fork()
if not child:
    said = list(heard)
    sys.stdout.write(json.dumps(said))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.torch
@pytest.mark.attack
def test_forked_child_loads_and_looks_up_nothing(ground: AgentGround, newest: str, prelude: str) -> None:
    """A thread of the parent may have held the loader's lock at the fork: the child would wait for it for ever."""
    job = ground.start(newest, prelude + FORK_AND_LISTEN, "-W", "ignore")
    assert job.wait() == 0
    heard = json.loads(job.output)
    assert [event for event in heard if event.startswith(("ctypes.", "import", "open", "os."))] == []


FORKS_BESIDE_A_LOADER = """
import ctypes, signal, threading
model, optimizer = make()
for _ in range(3):
    iterate(model, optimizer)
handle = ctypes.CDLL(None)
handle.dlopen.restype, handle.dlopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
handle.dlclose.argtypes = [ctypes.c_void_p]
ended = threading.Event()

def load():
    while not ended.is_set():
        loaded = handle.dlopen(b"libBrokenLocale.so.1", 2)
        if loaded:
            handle.dlclose(loaded)
        time.sleep(0.0002)

for _ in range(2):
    threading.Thread(target=load, daemon=True).start()
ends = {}
for number in range(int(os.environ["FORKS"])):
    child = os.fork()
    if not child:
        os._exit(0)
    for _ in range(10_000):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            end = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.001)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        end = "hung"
    ends[end] = ends.get(end, 0) + 1
ended.set()
print("ends", ends, flush=True)
os._exit(0)
"""


@pytest.mark.torch
@pytest.mark.attack
def test_forks_beside_threads_that_load_libraries_end_as_they_mean_to(
    ground: AgentGround, newest: str, prelude: str
) -> None:
    job = ground.start(newest, prelude + FORKS_BESIDE_A_LOADER, "-W", "ignore", FORKS=str(FORKS))
    assert job.wait() == 0
    assert job.output.splitlines()[-1] == f"ends {{0: {FORKS}}}"


SNAPSHOT = """
import atexit, builtins, fcntl, gc, json, locale, logging, resource, select, signal, socket, threading, warnings
gc.unfreeze()  # what no_compiler froze
socket.setdefaulttimeout(60)
logger, collector = socket.socketpair()
for end in (logger, collector):
    end.setblocking(True)

def descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
            flags = [fcntl.fcntl(int(name), what) for what in (fcntl.F_GETFL, fcntl.F_GETFD)]
            found[name] = target.split(":")[0] if ":" in target else "file", flags
        except OSError:
            pass
    return found

def observe():
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    return {
        "descriptors": descriptors(),
        "signals": {int(n): repr(signal.getsignal(n)) for n in signal.valid_signals()},
        "kernel's signals": [status[name].strip() for name in ("SigBlk", "SigIgn", "SigCgt")],
        "wakeup": signal.set_wakeup_fd(-1),
        "timers": [signal.getitimer(n) for n in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)],
        "environment": dict(os.environ),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "hooks": [repr(hook) for hook in (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook)],
        "tracing": [repr(value) for value in (sys.gettrace(), sys.getprofile(), threading._trace_hook)],
        "imports": [type(finder).__name__ for finder in sys.meta_path] + [repr(hook) for hook in sys.path_hooks],
        "path": [entry for entry in sys.path if "agent" not in entry],
        "builtins": sorted(vars(builtins)),
        "import": builtins.__import__.__name__,
        "collector": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks), gc.get_freeze_count()],
        "timeout": socket.getdefaulttimeout(),
        "umask": status["Umask"],
        "locale": locale.setlocale(locale.LC_ALL),
        "warnings": [repr(entry) for entry in warnings.filters],
        "logging": [repr(logging.root.handlers), logging.root.level, sorted(logging.root.manager.loggerDict)],
        "folder": os.getcwd(),
        "niceness": [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
        "memory's killer": open("/proc/self/oom_score_adj").read(),
        "limits": [resource.getrlimit(n) for n in range(16)],
        "interpreter": [sys.getswitchinterval(), sys.getrecursionlimit(), sys.getdefaultencoding()],
        "random": [torch.get_rng_state().sum().item()],
        "pytorch": [
            torch.get_num_threads(), torch.is_grad_enabled(), str(torch.get_default_dtype()),
            torch.autograd.profiler._is_profiler_enabled, torch.are_deterministic_algorithms_enabled(),
        ],
        "modules": sorted(sys.modules),
    }

torch.manual_seed(0)
model, optimizer = make()
iterate(model, optimizer)
print("training", flush=True)
while True:
    torch.manual_seed(0)  # before each iteration: however many there are, the state behind the last is the same
    iterate(model, optimizer)
    if is_stopped() and not any("fleetprof" in thread.name for thread in threading.enumerate()):
        break
print(json.dumps(observe()))
"""


@pytest.mark.torch
@pytest.mark.attack
def test_all_that_a_job_can_see_of_itself_is_as_without_us(ground: AgentGround, python: str, prelude: str) -> None:
    """After steps, reports and a capture: armed, watched, sampled, done with. Beside a job without the agent."""
    views = {}
    for switch in ("1", "0"):
        job = ground.start(python, prelude + SNAPSHOT, FLEETPROF_AGENT=switch)
        if switch == "1":
            ground.side.await_trainer()
            now = time.time_ns()
            ground.side.arm("c1", thread_samples=True, start_unix_ns=now, end_unix_ns=now + 10**9)
            ground.side.await_message("thread")
            ground.side.command("done", capture="c1", after_ns=0)
            ground.side.await_message("times")
        job.await_output("training")
        assert job.stop() == 0, job.output
        views[switch] = json.loads(re.sub(r" at 0x[0-9a-f]+", "", job.output.splitlines()[-1]))
    with_agent, without = views["1"], views["0"]
    modules = set(with_agent.pop("modules")) - set(without.pop("modules"))
    assert {name for name in modules if not name.startswith("fleetprof_agent")} <= {"sitecustomize"}
    for variables in (with_agent["environment"], without["environment"]):
        for name in ("FLEETPROF_AGENT", "JOB_STOP", "PYTHONPATH"):
            variables.pop(name, None)
    more = list(with_agent.pop("descriptors").values())
    for descriptor in without.pop("descriptors").values():
        more.remove(descriptor)
    assert [kind for kind, *_ in more] == ["socket", "socket"]  # the agent's and its listener's
    for what, value in without.items():
        assert with_agent[what] == value, what
