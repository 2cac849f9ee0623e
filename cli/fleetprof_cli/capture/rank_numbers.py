"""`--ranks`: numbers of ranks as text.

It stands apart from the other options of a request, so that commands that make none do without the request's types.
"""

import re

import click
from fleetprof_api.limits import MOST_LISTED_RANKS


def read_ranks(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[int] | None:
    """Reads the text of `--ranks` into rank numbers; click's callback, so a wrong text is a usage error."""
    try:
        return None if value is None else parse_ranks(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parse_ranks(text: str) -> list[int]:
    """`0,8,16-19` as numbers, each once. Raises ValueError with the rule."""
    ranks: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,7})(?:-(\d{1,7}))?\s*", part)
        if not match:
            raise ValueError(f"{part!r} must be a rank or a range of ranks, for example 0,8,16-19")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{part!r} must be a range from a lower to a higher rank")
        ranks.extend(range(first, min(last, first + MOST_LISTED_RANKS) + 1))
        if len(set(ranks)) > MOST_LISTED_RANKS:
            raise ValueError(f"{text!r} names more than {MOST_LISTED_RANKS} ranks; use --sample or --every")
    return list(dict.fromkeys(ranks))
