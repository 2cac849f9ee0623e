"""The shell's completion of jobs and captures: those that this machine's state directory knows.

Guarantees: reads files of the state directory only, so that a press of Tab waits for no network: captures in S3 are not
offered; what cannot be read completes to nothing, without a word.
"""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem
from fleetprof_api.plain_text import make_printable
from fleetprof_store.local import default_state_path

from fleetprof_cli.local.run.run_folder import live_runs
from fleetprof_cli.local.state import StateDirectory


def complete_job(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of jobs that `fleetprof run` has running here."""
    return _offer(incomplete, ((run.name, " ".join(run.command)) for run in live_runs(_find_state(context))))


def complete_capture(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names and uids of captures in a store that is a directory, the latest first."""
    from fleetprof_store.base import StoreError
    from fleetprof_store.captures import LATEST, read_captures
    from fleetprof_store.location import open_location

    location = _find_state(context).store()
    if not location.directory:
        return _offer(incomplete, [(LATEST, "")])
    try:
        ledgers = [capture.ledger for capture in read_captures(open_location(location))]
    except (StoreError, OSError, ValueError):
        return []
    by_name = [(ledger.name, ledger.outcome) for ledger in ledgers]
    by_uid = [(ledger.uid, ledger.name) for ledger in ledgers if incomplete]
    return _offer(incomplete, [(LATEST, by_name[0][0]), *by_name, *by_uid] if ledgers else [])


def complete_reference(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The same, and files."""
    return [*complete_capture(context, parameter, incomplete), CompletionItem(incomplete, type="file")]


def _find_state(context: click.Context) -> StateDirectory:
    """That of the command line so far, which need not name one yet."""
    return context.obj if isinstance(context.obj, StateDirectory) else StateDirectory(default_state_path())


def _offer(incomplete: str, found: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """Each name once, with what helps to choose, where a shell shows that."""
    names = dict(found)
    return [
        CompletionItem(make_printable(name), help=make_printable(note))
        for name, note in names.items()
        if name.startswith(incomplete)
    ]
