"""`fleetprof report`: what a capture found, read from the object store; no hub is needed.

Guarantees: `-o json` prints report.json as it is stored; `-o path` prints where it lies. With `--trace-window` a cut of
the capture's traces is written instead.
"""

import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import click
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import Report, UnreadableReport, read_report
from fleetprof_store.base import NotFound, Store, StoreError

from fleetprof_cli.completions import complete_capture
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.reports.modules import lines_option, modules_option, show_lines, show_modules, show_sarif
from fleetprof_cli.reports.stored import LATEST, StoredCapture, find_capture, read_captures
from fleetprof_cli.reports.tables import export_tables, tables_option
from fleetprof_cli.reports.trace_window import cut_options, read_cut, write_cut
from fleetprof_cli.store_location import open_store
from fleetprof_cli.terminal.reports import print_json, print_report


@click.command("report")
@click.argument("capture", default=LATEST, shell_complete=complete_capture)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@output_option(
    "text", "json", "path", "sarif",
    text="The report in words, report.json itself, the page's address, or lines of code as SARIF for an editor.",
)  # fmt: skip
@tables_option
@modules_option
@lines_option
@cut_options
@state_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    capture: str,
    open_page: bool,
    output: str,
    tables: Path | None,
    modules: int | None,
    lines: bool,
    out: Path | None,
    **_: Any,
) -> None:
    """Show the report of CAPTURE: its uid, the beginning of it, its name, a job's name (its latest), or `latest`."""
    state: StateDirectory = context.obj
    wanted = read_cut(context, "output", "tables", "open_page", "modules", "lines")
    store = open_store(state.store())
    found = find_capture(read_captures(store), capture)
    ledger = found.ledger
    if wanted is not None:
        from fleetprof_analyzer.timeline.trace_window import cut_capture

        try:
            write_cut(out, lambda write: cut_capture(store, ledger.namespace, ledger.uid, wanted, write))
        except StoreError as error:
            raise _unreadable(error) from None
        return
    data = _read(store, keys.report_key(ledger.namespace, ledger.uid), found)
    page_key = keys.report_page_key(ledger.namespace, ledger.uid)
    if modules is not None:
        show_modules(_understand(data), modules, output)
    elif lines:
        show_lines(_understand(data))
    elif output == "sarif":
        show_sarif(_understand(data))
    elif output == "json":
        print_json(data)
    elif output == "path":
        click.echo(store.locate(page_key))
    else:
        print_report(_understand(data))
        say(f"the page: {store.locate(page_key)}")
    if tables is not None:
        export_tables(_understand(data), tables)
    if open_page:
        _open(store, page_key, found)


def _read(store: Store, key: str, found: StoredCapture) -> bytes:
    try:
        return store.get(key)
    except NotFound:
        raise Failure(f"capture {found.ledger.uid} has no report", next_step=_why(found.ledger)) from None
    except StoreError as error:
        raise _unreadable(error) from None


def _unreadable(error: StoreError) -> Failure:
    return Failure(f"cannot read the object store: {error}")


def _understand(data: bytes) -> Report:
    try:
        return read_report(data)
    except UnreadableReport as error:
        raise Failure(str(error)) from None


def _why(ledger: Ledger) -> str:
    if not ledger.completed_unix_ns:
        return "it is not finished yet: fleetprof list"
    return f"it ended with {ledger.outcome or 'no result'}: {ledger.message}"


def _open(store: Store, key: str, found: StoredCapture) -> None:
    """Opens the page, after fetching it when it does not lie on this machine."""
    path = Path(store.locate(key))
    if not path.is_file():
        path = Path(tempfile.mkdtemp(prefix="fleetprof-")) / f"{found.ledger.uid}.html"
        path.write_bytes(_read(store, key, found))
    if not webbrowser.open(path.as_uri()):
        raise Failure("no browser could be started", next_step=f"open it yourself: {path}")
