"""Whole numbers of the command line within bounds, which help and errors name in words: "from 1 to 100"."""

from typing import Any

import click


class IntegerRange(click.IntRange):
    """A whole number from `min` to `max`; help calls it N."""

    name = "n"

    def _describe_range(self) -> str:
        if self.max is None:
            return f"of {self.min} or more"
        return f"from {self.min} to {self.max}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click.ParamType."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} must be a whole number {self._describe_range()}", param, ctx)
