"""A group of commands that loads only the one that is called, and ends by Ctrl-C as a shell's command does.

Guarantees: where the terminal takes a text or not, no command ends with a traceback for that (`terminal.streams`).
"""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem
from fleetprof_api.process.import_path import leave_current_folder_out

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.streams import failed_writes, make_encodable


class Commands(click.Group):
    """Commands by name: `commands_table` has their one-line help, `packages` the commands of each package.

    Each is `command` in the module of its name. `extras` are fleetprof's extras with which every command works.
    """

    def __init__(
        self,
        *arguments: Any,
        commands_table: Mapping[str, str],
        packages: Mapping[str, Iterable[str]],
        extras: str,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._extras = extras
        self._table = commands_table
        self._modules = {name: f"{package}.{name}" for package, names in packages.items() for name in names}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names in the table's order."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one, None when there is none of this name."""
        if cmd_name not in self._table:
            return None
        leave_current_folder_out()
        try:
            module = importlib.import_module(self._modules[cmd_name])
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.startswith("fleetprof_"):
                raise
            raise Failure(
                f"{cmd_name} needs the package {missing.name}, which is not installed",
                next_step=f"install what all commands need: pip install 'fleetprof[{self._extras}]'",
            ) from None
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command; of an unknown one it says which are similar, which click only knows of loaded ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as unknown:
            raise click.exceptions.NoSuchCommand(unknown.command_name, possibilities=self._table, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names that begin so, with the table's help, without loading a command; and the group's own options."""
        names = [CompletionItem(name, help=text) for name, text in self._table.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Reads the group's own words, of which some print a text."""
        make_encodable()
        with failed_writes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. At Ctrl-C it ends what it has started before it says so."""
        try:
            with failed_writes():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Failure("interrupted", code=ExitCode.INTERRUPTED) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the table without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._table.items()))
