"""A hub process with two tenants: one whose job is to be captured, and one that means harm. For test and bench."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TRAINER = HERE.parents[1] / "simulation" / "trainer.py"
NAME = "fleetprof-hub.test"
RANKS = 2
REFUSED = ("BadToken", "TooManyStreams", "TooOften", "Protocol")
LONGEST_S = 1200  # job and attack, which are ended after the capture: it is long on a busy machine
TOKEN_S = 6  # the job's token lives so long: its stream ends, and is dialled again, in the middle of the capture
# For the hub and the pods whose waits are timed: the other tenant would be on nodes of its own, and whoever else uses
# this machine is none of the hub's. Without the right to it, the command runs as it is.
FIRST = ("nice", "-n", "-10")


def play(folder: Path, dials: int = 0) -> dict[str, Any]:
    """The job's capture while the other tenant does its worst: what the hub says of it.

    `calm` has the loop's lag before, `did` what the other tenant did. With `dials` a third tenant dials that often
    before and that often meanwhile, each until the hub answers: `waits_s`, of both. Before, a process that does
    nothing keeps the machine about as busy as the other tenant does later, so that what differs is the hub's.
    """
    with ExitStack() as cleanup:
        hub = _start(
            cleanup, [str(HERE / "hub_process.py"), str(folder)], FIRST if dials else (), stdin=subprocess.PIPE
        )
        port = _ask(hub)["port"]
        sockets = folder / "s"
        sockets.mkdir()
        (folder / "token").write_text(f"team/a/{TOKEN_S}")
        words = ["--directory", str(sockets), "--spool", str(folder / "spool"), "--hub", f"127.0.0.1:{port}"]
        words += ["--ca-file", str(folder / "ca.crt"), "--hub-name", NAME, "--token-file", str(folder / "token")]
        words += ["--namespace", "team", "--pod-name", "a", "--pod-uid", "u-a", "--grace-seconds", "1"]
        _start(cleanup, ["-m", "fleetprof_sidecar.main", *words])
        _await(lambda: (sockets / "dynolog").exists(), "the sidecar")
        _start(cleanup, [str(TRAINER), "--directory", str(sockets), "--ranks", str(RANKS), "--seconds", str(LONGEST_S)])
        _await(lambda: _ask(hub, "ranks team")["ranks"] == RANKS, f"{RANKS} ranks")
        calm = _ask(hub, "calm")
        words = [str(HERE / "neighbour.py"), str(port), str(folder / "ca.crt"), NAME, str(dials)]
        waits: list[list[float]] = []
        if dials:
            with ExitStack() as busy:
                _start(busy, ["-c", "while True: pass"])
                waits.append(_time_dials(words, "before"))
        hostile = _start(
            cleanup,
            [str(HERE / "hostile_tenant.py"), str(port), str(folder / "ca.crt"), NAME, str(LONGEST_S)],
            stdout=subprocess.PIPE,
        )
        _await(lambda: all(_ask(hub, "refused")[kind] for kind in REFUSED), "the other tenant to do its worst")
        if dials:
            waits.append(_time_dials(words, "meanwhile"))
        found: dict[str, Any] = _ask(hub, "capture team a")
        assert hostile.stdout is not None
        found["attacked_to_the_end"] = hostile.poll() is None
        hostile.terminate()
        return found | {"calm": calm, "waits_s": waits, "did": json.loads(hostile.stdout.readline() or b"{}")}


def _start(cleanup: ExitStack, words: list[str], priority: Sequence[str] = (), **pipes: int) -> subprocess.Popen[bytes]:
    if "stdin" in pipes:
        pipes["stdout"] = subprocess.PIPE
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **pipes}
    process = subprocess.Popen([*priority, sys.executable, *words], stderr=subprocess.DEVNULL, **given)  # type: ignore[call-overload]
    cleanup.callback(_stop, process)
    return process  # type: ignore[no-any-return]


def _time_dials(words: list[str], phase: str) -> list[float]:
    answer = subprocess.run(
        [*FIRST, sys.executable, *words, phase], capture_output=True, text=True, timeout=600, check=True
    )
    waits: list[float] = json.loads(answer.stdout)
    return waits


def _stop(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def _ask(hub: subprocess.Popen[bytes], line: str = "") -> dict[str, Any]:
    assert hub.stdin is not None
    assert hub.stdout is not None
    if line:
        hub.stdin.write(f"{line}\n".encode())
        hub.stdin.flush()
    answer: dict[str, Any] = json.loads(hub.stdout.readline())
    return answer


def _await(fits: Any, what: str, patience_s: float = 200) -> None:
    until = time.monotonic() + patience_s
    while not fits():
        if time.monotonic() > until:
            raise AssertionError(f"waited {patience_s:g} s for {what}")
        time.sleep(0.1)
