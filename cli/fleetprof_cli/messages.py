"""Words for people: to stderr, never to stdout, each failure with what to do next.

Guarantees: each line begins with our name, and text from elsewhere can neither break it nor begin one; where nobody can
be told (a closed pipe, a full disk behind stderr), nothing fails for that.
"""

from collections.abc import Sequence
from contextlib import suppress

import click
from fleetprof_api.errors import FleetprofError
from fleetprof_api.plain_text import make_printable

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.typed_commands import as_typed


class Failure(FleetprofError, click.ClickException):
    """Ends the command with a sentence that names what is wrong, its details (a line each), a next step, and a code."""

    def __init__(
        self, message: str, *, details: Sequence[str] = (), next_step: str = "", code: ExitCode = ExitCode.FAILED
    ) -> None:
        super().__init__(message)
        self.details = details
        self.next_step = as_typed(next_step)
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: object = None) -> None:
        """Prints the failure to stderr."""
        for line in (self.message, *(f"  {detail}" for detail in self.details)):
            say(line)
        if self.next_step:
            say(f"  {self.next_step}")


def say(text: str) -> None:
    """One line for people, marked as ours: it may stand between a job's own output."""
    with suppress(OSError):
        click.echo(f"fleetprof: {make_printable(text)}", err=True)
