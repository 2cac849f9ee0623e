"""The checks of `fleetprof doctor` on this machine, each check a function from facts to a verdict with a next step.

Guarantees: looking changes nothing; a check that cannot look says so instead of raising; an advice that may be pasted
into a shell names only what belongs to this user, in quotes.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fleetprof_api.quantities import size

from fleetprof_cli.doctor.check import NO_AGENT, Check, Verdict
from fleetprof_cli.local.run.run_folder import RunFolder, run_folders
from fleetprof_cli.local.run.socket_directories import is_listened_at, make_socket_directory, socket_directories
from fleetprof_cli.local.state import ANOTHER, StateDirectory, find_existing
from fleetprof_cli.messages import Failure
from fleetprof_cli.shell_words import quote_path
from fleetprof_cli.store_location import StoreLocation

_WARN_BELOW_BYTES: Final = 5 << 30
_FAIL_BELOW_BYTES: Final = 512 << 20


def check_machine(state: StateDirectory, environment: Mapping[str, str]) -> Iterable[Check]:
    """All that can be seen without a hub, but for the interpreter that trains."""
    yield from judge_environment(environment)
    yield check_socket_directory()
    yield from check_state(state)
    yield judge_space("space for traces", Path(tempfile.gettempdir()), "set TMPDIR to a short path on a larger volume")
    yield judge_space("space for results", state.path, "choose another state directory or store: --state, up --store")
    yield from judge_store(state.store())
    yield from judge_leftovers(run_folders(state), socket_directories())


def judge_environment(environment: Mapping[str, str]) -> Iterable[Check]:
    """Variables that `fleetprof run` leaves as they are because somebody set them."""
    advice = {
        "KINETO_IPC_SOCKET_DIR": (Verdict.FAIL, "the job would ask another daemon than our sidecar: unset it"),
        "KINETO_ONDEMAND_TRACE_DIR": (Verdict.FAIL, "PyTorch after 2.13 would refuse to write where we look: unset it"),
        "KINETO_CONFIG": (Verdict.WARN, "the poll interval is what that file says, 5 s by default: unset it for 1 s"),
        "KINETO_DAEMON_INIT_DELAY_S": (Verdict.WARN, "delays the first poll in PyTorch 2.3 to 2.6: unset it"),
        "FLEETPROF_AGENT": (Verdict.WARN, f"the agent is off; {NO_AGENT}: unset it"),
    }
    clean = True
    for name, (verdict, what) in advice.items():
        value = environment.get(name)
        if value is None or (name == "FLEETPROF_AGENT" and value != "0"):
            continue
        clean = False
        yield Check(f"environment {name}", verdict, f"set to {value!r}", what)
    if clean:
        yield Check("environment", Verdict.OK, "nothing in it conflicts with fleetprof")


def check_socket_directory() -> Check:
    """Tells whether `fleetprof run` finds a place for its sockets."""
    try:
        directory = make_socket_directory()
    except (Failure, OSError) as error:
        return Check("socket directory", Verdict.FAIL, str(error), "set TMPDIR to a short, writable path")
    directory.rmdir()  # what is above it stays, as ever
    return Check(
        "socket directory", Verdict.OK, f"{quote_path(directory.parent)} can be used ({len(str(directory))} characters)"
    )


def check_state(state: StateDirectory) -> Iterable[Check]:
    """The state directory and its secrets."""
    if obstacle := state.find_obstacle():
        found = f"{quote_path(state.path)} cannot be used: {obstacle}"
        yield Check("state directory", Verdict.FAIL, found, ANOTHER)
        return
    if not state.path.is_dir():
        yield Check(
            "state directory", Verdict.WARN, f"{quote_path(state.path)} is not there yet", "`fleetprof up` makes it"
        )
        return
    if not _is_own(state.path):
        found = f"{quote_path(state.path)} belongs to another user"
        yield Check("state directory", Verdict.FAIL, found, ANOTHER)
        return
    open_to_others = [
        quote_path(path)
        for path in (state.path, state.token_file, state.path / "secret")
        if _is_own(path) and _is_open(path)
    ]
    if open_to_others:
        advice = f"close it: chmod go= {' '.join(open_to_others)}"
        yield Check("state directory", Verdict.FAIL, "others can read " + ", ".join(open_to_others), advice)
    else:
        yield Check("state directory", Verdict.OK, quote_path(state.path))


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _is_open(path: Path) -> bool:
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o077 != 0
    except OSError:
        return False


def judge_space(name: str, path: Path, advice: str) -> Check:
    """Free space where `path` lies or will lie."""
    try:
        path = find_existing(path)
        free = shutil.disk_usage(path).free
    except OSError as error:
        return Check(name, Verdict.WARN, f"{quote_path(path)} cannot be looked at: {error.strerror}", advice)
    verdict = Verdict.OK if free >= _WARN_BELOW_BYTES else Verdict.WARN if free >= _FAIL_BELOW_BYTES else Verdict.FAIL
    return Check(name, verdict, f"{size(free)} free at {quote_path(path)}", "" if verdict == Verdict.OK else advice)


def judge_store(location: StoreLocation) -> Iterable[Check]:
    """Judges the needs of the store of the last `up` from its owner: nobody else can clear it away, or close it."""
    if location.bucket:
        rule = "AbortIncompleteMultipartUpload"
        advice = f"unless it is there, give the bucket a lifecycle rule with {rule} (docs/limits.md)"
        yield Check("store", Verdict.OK, location.address(), advice)
    elif _is_own(folder := Path(location.directory)) and _is_open(folder) and _is_open(folder.parent):
        advice = f"unless it is meant for them: chmod -R go= {quote_path(folder)}"
        yield Check("store", Verdict.WARN, f"others can enter {quote_path(folder)}, which was there before", advice)


def judge_leftovers(folders: Iterable[RunFolder], directories: Iterable[Path]) -> Iterable[Check]:
    """Judges leftovers of runs that died without a word."""
    alive = set()
    dead = []
    for folder in folders:
        if not _is_own(folder.path):
            continue
        record = folder.record()
        if folder.is_alive():
            alive.add(record.socket_directory if record else "")
        else:
            dead.append(folder)
    clean = True
    for folder in dead:
        clean = False
        unsent = folder.unsent_bytes()
        found = f"{quote_path(folder.path)} of a run that has ended" + (
            f", {size(unsent)} of traces not uploaded" if unsent else ""
        )
        ends = "the next `fleetprof up` finishes its captures; " if folder.holds_captures() else ""
        sends = "the next `fleetprof up` sends them; " if unsent else ends
        yield Check(
            "leftovers", Verdict.WARN, found, f"{sends}when you do not need it: rm -r {quote_path(folder.path)}"
        )
    for directory in directories:
        if str(directory) not in alive and _is_own(directory) and not is_listened_at(directory):
            clean = False
            yield Check(
                "leftovers",
                Verdict.WARN,
                f"socket directory {quote_path(directory)} of a run that has ended",
                f"when no job uses it: rm -r {quote_path(directory)}",
            )
    if clean:
        yield Check("leftovers", Verdict.OK, "none")
