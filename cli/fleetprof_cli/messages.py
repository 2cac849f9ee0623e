"""Words for people: to stderr, never to stdout, each failure with what to do next."""

import click

from fleetprof_cli.exit_codes import ExitCode


class Failure(click.ClickException):
    """Ends the command with a sentence that names what is wrong, a next step, and an exit code."""

    def __init__(self, message: str, *, next_step: str = "", code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.next_step = next_step
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: object = None) -> None:
        """Prints the failure to stderr."""
        say(self.message)
        if self.next_step:
            say(f"  {self.next_step}")


def say(text: str) -> None:
    """One line for people, marked as ours: it may stand between a job's own output."""
    for line in text.splitlines() or [""]:
        click.echo(f"fleetprof: {make_printable(line)}", err=True)


def make_printable(text: str) -> str:
    """Text from elsewhere without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
