"""`fleetprof-analyzer`: the analyzer as a Kubernetes Job. The command line of people is `fleetprof`.

    fleetprof-analyzer report NAMESPACE UID             traces → report, in one pod
    fleetprof-analyzer summarise NAMESPACE UID --of N   every N-th rank's trace → its summary; an Indexed Job of N pods
    fleetprof-analyzer merge NAMESPACE UID              summaries → report

In a cluster the operator at FLEETPROF_HUB signs an address for each object of the pod's own capture
(`fleetprof_store.granted`), and the pod has no credential. By hand, FLEETPROF_STORE names the store
(`fleetprof_store.location`), and boto3's chain has the credentials. Guarantees: writes to the store only; every end
has an exit code (`exit_codes`) and, when it is no success, one sentence as the pod's termination message; killed at any
moment it leaves whole objects, and can be run again.
"""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.keys import InvalidKeyPart
from fleetprof_api.memory_shortage import HELPER, go_first
from fleetprof_api.pods import IDENTITY_DIRECTORY
from fleetprof_api.process.log import about, set_up_logging
from fleetprof_api.process.memory import container_limit
from fleetprof_api.report.report import Report
from fleetprof_store.base import Store, StoreError
from fleetprof_store.location import VARIABLE, open_location, parse_location

from fleetprof_analyzer.capture.exit_codes import JobExit
from fleetprof_analyzer.capture.memory import keep_freed_memory, limits_within
from fleetprof_analyzer.capture.store import NothingStored, analyze_capture, merge_capture, summarise_ranks

INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
HUB_VARIABLE: Final = "FLEETPROF_HUB"
IDENTITY_VARIABLE: Final = "FLEETPROF_IDENTITY"
_TERMINATION_LOG: Final = Path("/dev/termination-log")
_SENTENCE_BYTES: Final = 2048

log = logging.getLogger("fleetprof-analyzer")


class Wrong(FleetprofError):
    """The command line or the environment is; the message says what and what it must be."""


class _Parser(argparse.ArgumentParser):
    """Ends like everything else here: with a sentence and INVALID."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise Wrong(message)


def main() -> None:
    """Runs one command and ends the process with its code."""
    go_first(HELPER)  # trainers may share the node
    keep_freed_memory()
    set_up_logging("info")
    sys.exit(run(sys.argv[1:], os.environ))


def run(arguments: Sequence[str], environment: Mapping[str, str], *, termination_log: Path = _TERMINATION_LOG) -> int:
    """Runs one command; its exit code. Never raises."""
    try:
        _command(arguments, environment)
    except Wrong as error:
        return _end(JobExit.INVALID, str(error), termination_log)
    except NothingStored as error:
        return _end(JobExit.NOTHING_STORED, str(error), termination_log)
    except StoreError as error:
        return _end(JobExit.STORE_AWAY if error.retryable else JobExit.STORE_REFUSES, str(error), termination_log)
    except MemoryError:
        return _end(JobExit.FAULT, "out of memory; raise spec.analysis.resources", termination_log)
    except Exception as error:
        log.exception("a fault of the analyzer")
        return _end(JobExit.FAULT, f"a fault of the analyzer: {type(error).__name__}: {error}", termination_log)
    return JobExit.DONE


def _command(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    options = _parser().parse_args(arguments)
    with about(capture=options.uid, namespace=options.namespace):
        _work(options, environment)


def _work(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    store = _open_store(environment)
    limits = limits_within(container_limit())
    try:
        match options.command:
            case "report":
                _tell(analyze_capture(store, options.namespace, options.uid, progress=_progress, limits=limits))
            case "summarise":
                shard = _shard(environment, options.of)
                made = summarise_ranks(
                    store,
                    options.namespace,
                    options.uid,
                    shard=shard,
                    shards=options.of,
                    progress=_progress,
                    limits=limits,
                )
                log.info("%d summaries made in shard %d of %d", made, shard, options.of)
            case _:
                _tell(merge_capture(store, options.namespace, options.uid))
    except InvalidKeyPart as error:
        raise Wrong(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fleetprof-analyzer", description="Makes the report of a capture in the object store.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("report", "makes the report from the traces, in one pod"),
        ("summarise", f"makes the summaries of every N-th rank, from {INDEX_VARIABLE} on"),
        ("merge", "makes the report from the summaries"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("namespace", metavar="NAMESPACE")
        command.add_argument("uid", metavar="UID")
        if name == "summarise":
            command.add_argument("--of", type=int, required=True, metavar="N", help="how many pods share the ranks")
    return parser


def _open_store(environment: Mapping[str, str]) -> Store:
    if target := environment.get(HUB_VARIABLE):
        from fleetprof_store.granted import GrantedStore

        folder = Path(environment.get(IDENTITY_VARIABLE, IDENTITY_DIRECTORY))
        authority = folder / "ca.crt"
        try:
            return GrantedStore(target, folder / "token", authority if authority.exists() else None)
        except ValueError as error:
            raise Wrong(f"{HUB_VARIABLE}: {error}") from None
    try:
        return open_location(parse_location(environment.get(VARIABLE, "")))
    except ValueError as error:
        raise Wrong(f"{VARIABLE}: {error}") from None


def _shard(environment: Mapping[str, str], shards: int) -> int:
    text = environment.get(INDEX_VARIABLE, "")
    if not text.isdecimal():
        raise Wrong(f"{INDEX_VARIABLE}: must be the pod's index in an Indexed Job, got {text[:40]!r}")
    if not 1 <= shards <= 100_000 or int(text) >= shards:
        raise Wrong(f"--of {shards}: must be above {INDEX_VARIABLE} ({int(text)}) and at most 100000")
    return int(text)


def _progress(count: int, of: int, source: str) -> None:
    log.info("%d of %d: %s", count, of, source)


def _tell(report: Report) -> None:
    log.info("report of %d ranks written, %d problems with the input", len(report.ranks), len(report.problems))


def _end(code: JobExit, sentence: str, termination_log: Path) -> int:
    sentence = " ".join(sentence.split())
    log.error("%s: %s", code.name, sentence)
    try:
        # Kubernetes makes this file; elsewhere none is made.
        with termination_log.open("r+b") as file:
            file.truncate()
            file.write(sentence.encode(errors="replace")[:_SENTENCE_BYTES])
    except OSError:
        pass
    return code
