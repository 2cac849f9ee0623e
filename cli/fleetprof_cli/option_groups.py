"""A command whose help shows its options in groups, each with a heading: `capture` has twenty."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


class GroupedCommand(click.Command):
    """A command with `groups`: a heading and the names of its options. Options in no group stand below Options."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._headings = {name: heading for heading, names in groups.items() for name in names}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes each group in the order of its first option, and what is in none at the end."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(self._headings.get(parameter.name or "", "Options"), []).append(record)
        rest = sections.pop("Options", [])
        for heading, rows in [*sections.items(), *([("Options", rest)] if rest else [])]:
            with formatter.section(heading):
                formatter.write_dl(rows)
