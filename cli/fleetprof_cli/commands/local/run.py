"""`fleetprof run -- COMMAND`: the command with Kineto switched on, a sidecar and a hub beside it, nothing else changed.

Guarantees: the command runs whatever happens to us, and its exit code is ours; signals reach it once; the sidecar ends
after it within a bound, and a hub that a run started with the last one; no socket and no directory stays behind, except
finished traces that could not be stored and captures whose end no hub could be told.
"""

import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
from fleetprof_api.quantities import size
from fleetprof_sidecar.sockets.directory import trainer_environment

from fleetprof_cli.durations import Duration
from fleetprof_cli.local.run import job
from fleetprof_cli.local.run.job_name import MAX_NAMESPACE_LENGTH, name_job, refuse_name
from fleetprof_cli.local.run.run_folder import RunFolder, RunRecord, live_runs, new_run_folder
from fleetprof_cli.local.run.shared_hub import SharedHub
from fleetprof_cli.local.run.sidecar_process import SidecarProcess
from fleetprof_cli.local.run.socket_directories import make_socket_directory
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import unchecked_state_option

WORKLOAD_API_VERSION: Final = "batch/v1"
WORKLOAD_KIND: Final = "Job"
DEFAULT_NAMESPACE: Final = "local"
_NEXT_HUB: Final = "the next hub (`fleetprof up`, or a job)"


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--name", metavar="NAME", help="Name of the job (default: the Slurm job's, else the script's).")
@click.option("--namespace", metavar="NAME", default=DEFAULT_NAMESPACE, show_default=True, help="Namespace of the job.")
@click.option("--label", "labels", metavar="KEY=VALUE", multiple=True, help="A label for selectors. May be repeated.")
@click.option("--no-agent", is_flag=True, help="Run without the agent: captures start at a time, not at an iteration.")
@click.option(
    "--linger",
    metavar="DURATION",
    type=Duration(0, 3600),
    default=30,
    show_default="30s",
    help="How long the sidecar may take after the command to store what was captured.",
)
@click.option("--no-hub", is_flag=True, help="Start no hub where none runs: `up` does, at any time.")
@click.option(
    "--hub",
    metavar="HOST:PORT",
    envvar="FLEETPROF_HUB",
    help="Another hub (default: that of the state directory, which starts with the first job).",
)
@click.option(
    "--token-file",
    metavar="FILE",
    envvar="FLEETPROF_TOKEN_FILE",
    type=click.Path(path_type=Path),
    help="With --hub: its token (default: the state directory's).",
)
@click.option(
    "--ca-file",
    metavar="FILE",
    envvar="FLEETPROF_CA_FILE",
    type=click.Path(path_type=Path),
    help="With --hub: certificates to check it with.",
)
@click.argument("words", metavar="-- COMMAND [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
@unchecked_state_option
@click.pass_obj
def command(
    state: StateDirectory,
    *,
    name: str | None,
    namespace: str,
    labels: tuple[str, ...],
    no_agent: bool,
    linger: int,
    no_hub: bool,
    hub: str | None,
    token_file: Path | None,
    ca_file: Path | None,
    words: tuple[str, ...],
) -> None:
    """Run a training command so that it can be captured.

    The command keeps its terminal, its signals and its exit code. It needs no change: the environment that Kineto
    wants is set, and a sidecar process runs beside it. The hub starts with the first job and ends with the last one;
    `fleetprof up`, before or after, has one that stays.
    """
    _check(name, namespace, labels)
    environment = dict(os.environ)
    if no_agent:
        environment["FLEETPROF_AGENT"] = "0"
    try:
        job.find_program(words[0])
    except job.CannotStart as error:
        say(str(error))
        raise SystemExit(error.code) from None
    job.block_signals()
    with ExitStack() as cleanup:
        try:
            link = _link(state, hub, token_file, ca_file)
            shares = hub is None and not no_hub
            beside, environment = _prepare(
                state, cleanup, name, namespace, labels, linger, link, words, environment, shares_hub=shares
            )
        except Exception as error:  # the job is sacred: it runs without us
            why = error.message if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
            step = f"; {error.next_step}" if isinstance(error, Failure) and error.next_step else ""
            say(f"this job cannot be captured: {why}{step}")
            beside = None
        code = _run(words, environment, beside)
    job.end_as(code)


def _check(name: str | None, namespace: str, labels: Sequence[str]) -> None:
    if name is not None and (problem := refuse_name(name)):
        raise click.BadParameter(problem, param_hint="--name")
    if problem := refuse_name(namespace, MAX_NAMESPACE_LENGTH):
        raise click.BadParameter(problem, param_hint="--namespace")
    for label in labels:
        if not label.partition("=")[0] or "=" not in label or "," in label:
            raise click.BadParameter(f"{label!r} must be KEY=VALUE, without a comma", param_hint="--label")


def _link(state: StateDirectory, hub: str | None, token_file: Path | None, ca_file: Path | None) -> list[str]:
    """The sidecar's arguments that say how to reach the hub."""
    state.prepare()
    if hub is None:
        return ["--state", str(state.path)]
    if ca_file is None:
        raise Failure(
            f"--hub {hub} needs --ca-file: without it, nobody could tell the hub from whoever listens there",
            next_step="name the certificate of `up --tls-cert`, or leave --hub out and use the state directory of `up`",
        )
    if token_file is None:
        state.token()
        token_file = state.token_file
    return ["--hub", hub, "--token-file", str(token_file), "--ca-file", str(ca_file)]


def _prepare(
    state: StateDirectory,
    cleanup: ExitStack,
    name: str | None,
    namespace: str,
    labels: Sequence[str],
    linger: int,
    link: Sequence[str],
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    shares_hub: bool,
) -> tuple[Callable[[], float], dict[str, str]]:
    """Starts sidecar and hub; what looks after them, and the environment that the command needs.

    Raises when there can be no capture.
    """
    name = name or name_job(words, environment, {run.name for run in live_runs(state)})
    directory = make_socket_directory()
    cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
    folder = new_run_folder(state, name)
    host = socket.gethostname()
    record = RunRecord(
        name=name,
        namespace=namespace,
        pid=os.getpid(),
        socket_directory=str(directory),
        started_unix_ns=time.time_ns(),
        command=list(words),
        host_name=host,
    )
    shared = SharedHub(state, folder.hub_log)
    if shares_hub:
        cleanup.callback(shared.leave, linger)  # runs when the folder is gone, which keeps the hub
    with state.errors():
        cleanup.enter_context(folder.hold(record))
    arguments = [
        *("--directory", str(directory)),
        *("--spool", str(folder.spool)),
        *("--agent-directory", str(folder.agent)),
        *link,
        *("--namespace", namespace),
        *("--pod-name", f"{host}-{folder.path.name}"),
        *("--node-name", host),
        *("--grace-seconds", str(linger)),
        *("--workload", f"{WORKLOAD_API_VERSION}/{WORKLOAD_KIND}/{name}"),
    ]
    if labels:
        arguments += ["--label", ",".join(labels)]
    sidecar = SidecarProcess(arguments, log=folder.log, socket=directory / "dynolog")
    # The spool may be cleared only after the sidecar has ended: callbacks run in reverse order.
    cleanup.callback(_leave, folder, state if "--state" in link else None)
    cleanup.callback(sidecar.stop, linger)
    if not sidecar.start():
        sidecar.kill()
        raise Failure(f"the sidecar did not start; {_last_line(folder.log)}")
    say(f"job {name!r} can be captured: fleetprof capture {name}")
    if shares_hub:
        shared.join(environment)
    elif "--state" in link and state.hub() is None:
        say("no hub runs yet: start `fleetprof up` at any time, in another terminal")

    def look_after() -> float:
        shared.look_after()
        return sidecar.look_after()

    return look_after, trainer_environment(str(directory), environment, agent=str(folder.agent))


def _run(words: Sequence[str], environment: Mapping[str, str], look_after: Callable[[], float] | None) -> int:
    """The command's exit code, -n where signal n ended it."""
    try:
        pid = job.start(words, environment)
    except job.CannotStart as error:
        say(str(error))
        return error.code
    return job.wait_for(pid, look_after or (lambda: 3600.0))


def _leave(folder: RunFolder, state: StateDirectory | None) -> None:
    """Removes the run's folder, or says what is still in it; `state`: where the hub is looked up."""
    unsent = folder.unsent_bytes()
    if unsent:
        say(f"{size(unsent)} of traces could not be uploaded yet and stay in {folder.spool}; {_NEXT_HUB} sends them")
    elif state is not None and not state.is_hub_alive() and folder.holds_captures():
        say(f"the job ended during a capture while no hub ran; {_NEXT_HUB} finishes that capture")
    else:
        folder.remove()


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return f"its log ends with: {lines[-1]}" if lines else f"see {log}"
