"""The commands' output about a request: an object for machines, sentences for people."""

import json
from collections.abc import Sequence
from typing import Any

import click
import yaml
from fleetprof_api.plain_text import make_printable

from fleetprof_cli.kubernetes.request_state import RequestState, headline_lines
from fleetprof_cli.messages import say


def print_document(document: Any, form: str) -> None:
    """An object on stdout, as `json` or `yaml`."""
    if form == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(yaml.safe_dump(document, sort_keys=False), nl=False)


def print_request(state: RequestState, form: str) -> None:
    """A request as `json`, `yaml` or `name` on stdout."""
    if form == "name":
        click.echo(f"profilerequest.fleetprof.io/{state.name}")
    else:
        print_document(state.document, form)


def print_end(state: RequestState, form: str) -> None:
    """Prints the end of a request: `text` prints where the report is; the rest goes to stderr."""
    if form != "text":
        print_request(state, form)
    elif state.status.report_url:
        click.echo(make_printable(state.status.report_url))
    _say_all(headline_lines(state.status.headline))
    _say_all(state.troubles())
    if state.status.report_url:
        word = "stacks" if state.is_of_stacks else "report"
        say(f"the {word}: kubectl fleetprof {word} {state.name} -n {state.namespace}")


def _say_all(lines: Sequence[str]) -> None:
    for line in lines:
        say(line)
