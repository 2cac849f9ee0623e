"""`kubectl fleetprof report`: what a capture found, from the object store; without it, what the status holds.

Guarantees: `-o json` prints report.json as it is stored, or fails; a store that cannot be read is said, never hidden.
With `--trace-window` a cut of the capture's traces is written instead.
"""

import asyncio
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import click
from fleetprof_api.plain_text import make_printable
from fleetprof_api.report.report import Report, UnreadableReport, read_report

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.options import place_options, read_place, read_store, store_options
from fleetprof_cli.kubernetes.request_state import RequestState, headline_lines
from fleetprof_cli.kubernetes.requests import LATEST, Requests
from fleetprof_cli.kubernetes.results import Results
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.options import output_option
from fleetprof_cli.reports.modules import lines_option, modules_option, show_lines, show_modules, show_sarif
from fleetprof_cli.reports.tables import export_tables, tables_option
from fleetprof_cli.reports.trace_window import cut_options, read_cut
from fleetprof_cli.terminal.reports import print_json, print_report


@click.command("report")
@click.argument("name", default=LATEST)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@output_option(
    "text", "json", "path", "sarif",
    text="The report in words, report.json itself, the page's address, or lines of code as SARIF for an editor.",
)  # fmt: skip
@tables_option
@modules_option
@lines_option
@cut_options
@store_options
@place_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    name: str,
    open_page: bool,
    output: str,
    tables: Path | None,
    modules: int | None,
    lines: bool,
    out: Path | None,
    **flags: Any,
) -> None:
    """Show the report of NAME, the latest request of the namespace by default.

    It reads the object store with your own S3 credentials. If it cannot, it shows what the request's status says, and
    fails.
    """
    wanted = read_cut(context, "output", "tables", "open_page", "modules", "lines")
    place = read_place(flags)
    choice = read_store(flags, place)
    state = asyncio.run(_find(place, name))
    if not state.finished:
        raise Failure(
            f"{state.name} has no report yet: {state.sentence()}",
            next_step=f"wait for it: kubectl fleetprof wait {state.name} -n {state.namespace}",
        )
    if wanted is not None:
        Results.open(state, choice).cut(out, wanted)
        return
    stored, page = state.status.store_url or state.status.report_url, state.status.report_url
    if tables is None and output == "path" and stored:
        click.echo(make_printable(stored))
        return
    if tables is None and open_page and page and page.startswith(("https://", "http://")):
        _browse(page)
        return
    try:
        results = Results.open(state, choice)
        data = results.report()
        html = results.page() if open_page else b""
    except Failure:
        if output != "text" or open_page or tables is not None:
            raise
        _show_headline(state)
        raise
    if modules is not None:
        show_modules(_understand(data), modules, output)
    elif lines:
        show_lines(_understand(data))
    elif output == "sarif":
        show_sarif(_understand(data))
    elif output == "json":
        print_json(data)
    elif output == "path":
        click.echo(make_printable(stored or results.page_address()))
    else:
        print_report(_understand(data))
        say(f"the page: {page or results.page_address()}")
    if tables is not None:
        export_tables(_understand(data), tables)
    if open_page:
        path = Path(tempfile.mkdtemp(prefix="fleetprof-")) / f"{state.name}.html"
        path.write_bytes(html)
        _browse(path.as_uri())


def _understand(data: bytes) -> Report:
    try:
        return read_report(data)
    except UnreadableReport as error:
        raise Failure(str(error)) from None


async def _find(place: ClusterPlace, name: str) -> RequestState:
    async with connect(place) as connection:
        return await Requests(connection).find(name)


def _show_headline(state: RequestState) -> None:
    """Shows the headline, which needs no store."""
    lines = headline_lines(state.status.headline)
    if not lines:
        return
    click.echo(make_printable(f"{state.name}: {state.sentence()}"))
    if state.status.requester:
        click.echo(make_printable(f"  asked for by {state.status.requester}"))
    for line in lines:
        click.echo(make_printable(f"  {line}"))
    say("this is what the request's status holds; the report itself cannot be read")
    if state.status.report_url:
        say(f"the report: {state.status.report_url}")


def _browse(address: str) -> None:
    if not webbrowser.open(address):
        raise Failure("no browser could be started", next_step=f"open it yourself: {address}", code=ExitCode.FAILED)
