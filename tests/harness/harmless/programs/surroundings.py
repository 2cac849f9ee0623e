"""Trainings that change signals, descriptors, limits, clocks, environment or hooks of their process."""

import ctypes
import gc
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

if sys.argv[1].startswith("clock_"):  # before PyTorch is imported, as tests and replays do it
    REAL, CALLS = time.time_ns, [0]

    def _tell_time():
        CALLS[0] += 1
        how = sys.argv[1].removeprefix("clock_")
        if how == "refuses":
            raise RuntimeError("no time")
        return {
            "stands": 1_700_000_000_000_000_000,
            "jumps": REAL() + (-1) ** (CALLS[0] // 50) * 10**17,
            "is_a_float": float(REAL()),
        }[how]

    time.time_ns = _tell_time

import torch
import torch.optim.optimizer as optimizers
from training import BESIDE, LEAST, SteadyTraining, is_stopped, run_one, tell, tell_ready


def clock_stands() -> None:
    SteadyTraining().run()


clock_jumps = clock_is_a_float = clock_refuses = clock_stands


class OutOfTime(Exception):
    """A block of the job took too long."""


def handler_raises() -> None:
    def expire(*_):
        raise OutOfTime

    signal.signal(signal.SIGALRM, expire)
    training = SteadyTraining()
    training.backward()
    tell_ready()
    heard = lost = 0
    while heard < 50 or not is_stopped():
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        until = time.monotonic() + 2
        try:
            while time.monotonic() < until:
                training.optimizer.step()
            lost += 1
        except OutOfTime:
            heard += 1
    tell("lost", lost)


def steps_in_a_handler() -> None:
    training = SteadyTraining()
    training.backward()
    signal.signal(signal.SIGALRM, lambda *_: training.optimizer.step())
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.007)
    while training.goes_on():
        training.iterate()
    signal.setitimer(signal.ITIMER_REAL, 0)
    tell(training.iterations >= LEAST)


def profiling_signal() -> None:
    hits = []
    signal.signal(signal.SIGPROF, lambda *_: hits.append(len(sys._getframe(1).f_locals)))
    signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    training = SteadyTraining()
    while training.goes_on():
        training.iterate()
    tell(training.digest, bool(hits))


def _close_all_and_talk(kind: int, after: int) -> None:
    training = SteadyTraining()
    for _ in range(after):
        training.iterate()
    os.closerange(3, 4096)
    pairs = [socket.socketpair(socket.AF_UNIX, kind) for _ in range(20)]
    sent = received = 0
    strange: list[bytes] = []
    for turn in range(15):
        for pair in pairs:
            for end in pair:
                sent += end.send(b"a" * 100)
        time.sleep(0.3)  # data waits for longer than we listen
        training.iterate()
        for pair in pairs:
            for end in pair:
                end.setblocking(False)
                try:
                    while data := end.recv(65536):
                        received += len(data)
                        strange += [data] if data.strip(b"a") else []
                except BlockingIOError:
                    pass
                end.setblocking(True)
        if turn == 1:
            tell_ready()
    tell(sent - received, strange)


def closes_descriptors_early() -> None:
    _close_all_and_talk(socket.SOCK_STREAM, 3)


def closes_descriptors_stream() -> None:
    _close_all_and_talk(socket.SOCK_STREAM, 20)


def closes_descriptors_datagram() -> None:
    _close_all_and_talk(socket.SOCK_DGRAM, 20)


def closes_descriptors_packets() -> None:
    _close_all_and_talk(socket.SOCK_SEQPACKET, 20)


def closes_descriptors_late() -> None:
    _close_all_and_talk(socket.SOCK_STREAM, 100)


def _after(iterations: int, change) -> None:
    training = SteadyTraining()
    while training.goes_on():
        training.iterate()
        if training.iterations == iterations:
            change()
    tell(training.digest)


def becomes_another_user() -> None:
    def change():
        os.setgid(2001)
        os.setuid(2001)

    _after(15, change)


def empties_its_environment() -> None:
    _after(15, os.environ.clear)


def removes_our_folder() -> None:
    folder = os.environ.get("KINETO_IPC_SOCKET_DIR", "")
    _after(15, lambda: shutil.rmtree(folder, ignore_errors=True) if folder else None)


def closes_its_output() -> None:
    def change():
        os.close(0)
        os.close(2)

    _after(15, change)


def keeps_all_garbage() -> None:
    _after(15, lambda: gc.set_debug(gc.DEBUG_SAVEALL))


def changes_root() -> None:
    folder = tempfile.mkdtemp()
    training = SteadyTraining()

    def change():
        os.chroot(folder)
        os.chdir("/")

    for _ in range(400):  # it sees no stop file from there
        training.iterate()
        if training.iterations == 15:
            change()
    tell(training.digest)


def forbids_system_calls() -> None:
    """No socket may be made, bound, connected, written or read."""

    def change():
        refuse = b"".join(
            struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | 1)
            for number in (41, 42, 44, 45, 46, 47, 49, 7, 271)
        )
        program = struct.pack("HBBI", 0x20, 0, 0, 0) + refuse + struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
        buffer = ctypes.create_string_buffer(program)
        rules = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
        library = ctypes.CDLL(None)
        assert library.prctl(38, 1, 0, 0, 0) == 0
        assert library.prctl(22, 2, ctypes.create_string_buffer(rules), 0, 0) == 0

    _after(15, change)


def few_descriptors() -> None:
    most = max(map(int, os.listdir("/proc/self/fd"))) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    SteadyTraining().run()


def many_descriptors() -> None:
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(3000)]
    SteadyTraining().run()
    assert kept


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    SteadyTraining().run()


def little_address_space() -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20),) * 2)
    SteadyTraining().run()


def small_stacks() -> None:
    threading.stack_size(32 << 10)
    SteadyTraining().run()


def no_more_processes() -> None:
    training = SteadyTraining()
    for _ in range(5):  # with which PyTorch and the job open files that another user may not
        training.iterate()
    os.setgid(2003)
    os.setuid(2003)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    training.run()


def clears_hooks() -> None:
    training = SteadyTraining()
    calls: list[int] = []
    optimizers.register_optimizer_step_post_hook(lambda *_: calls.append(1))
    training.optimizer.register_step_pre_hook(lambda *_: None)
    changes = {
        60: lambda: optimizers._global_optimizer_post_hooks.clear(),
        100: lambda: (gc.callbacks.clear(), gc.collect()),
        120: lambda: (sys.setprofile(lambda *_: None), threading.setprofile(lambda *_: None)),
        140: lambda: (sys.setprofile(None), sys.settrace(lambda *_: None)),
        160: lambda: (sys.settrace(None), gc.disable()),
    }
    while training.goes_on() or training.iterations < 200:
        training.iterate()
        changes.get(training.iterations, lambda: None)()
    tell(training.digest, len(calls))


def trains_at_exit() -> None:
    import atexit

    training = SteadyTraining()
    atexit.register(lambda: (training.iterate(), tell("at exit")))
    training.run()


def import_fails() -> None:
    """PyTorch is there by half, as after a failed import, and the job goes on without it."""
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]
    sys.modules["torch._C"] = None
    try:
        __import__("torch")
    except ImportError:
        tell("no PyTorch")
    tell_ready()
    until = time.monotonic() + 10
    while not is_stopped() and time.monotonic() < until and BESIDE:
        time.sleep(0.1)
    os._exit(0)


def pauses_are_short() -> None:
    """The longest step is told beside the result: how long is nobody's promise on a busy machine."""
    training = SteadyTraining(width=32)
    longest = 0.0
    while training.goes_on():
        began = time.monotonic()
        training.iterate()
        longest = max(longest, time.monotonic() - began)
    tell(training.digest, "longer than 20 s" if longest > 20 else "")


def watches_its_memory() -> None:
    training = SteadyTraining(foreach=False)
    training.backward()

    def count():
        return len(os.listdir("/proc/self/fd")), int(open("/proc/self/statm").read().split()[1]) * 4 >> 10

    for _ in range(200):
        training.iterate()
    descriptors, memory_mib = count()
    for _ in range(50_000):
        training.optimizer.step()
    while not is_stopped():
        training.iterate()
    tell(count()[0] - descriptors > 8, count()[1] - memory_mib > 256)


if __name__ == "__main__":
    assert torch
    run_one({name: value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")})
